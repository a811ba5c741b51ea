package client

import (
	"slices"

	"handoffd/configs"
	"handoffd/engine/fault"
)

// supported refuses what a project's configuration can say and this version
// does not do: a key is honoured or refused, never ignored.
func supported(r configs.Resolved) error {
	byDefault := configs.StoreDefaults()
	for _, k := range []struct {
		key string
		set bool
	}{
		{"auto_capture", r.AutoCapture != byDefault.AutoCapture},
		{"exclude_from_handoff", !slices.Equal(r.ExcludeFromHandoff, byDefault.ExcludeFromHandoff)},
		{"capture.exclude_patterns", !slices.Equal(r.Capture.ExcludePatterns, byDefault.Capture.ExcludePatterns)},
		{"capture.include_tool_outputs", r.Capture.IncludeToolOutputs != byDefault.Capture.IncludeToolOutputs},
		{"capture.truncate_tool_outputs", r.Capture.TruncateToolOutputs != byDefault.Capture.TruncateToolOutputs},
		{"capture.max_tool_output_length", r.Capture.MaxToolOutputLength != byDefault.Capture.MaxToolOutputLength},
		{"gate.mode", r.Gate.Mode != byDefault.Gate.Mode},
	} {
		if k.set {
			return fault.New(fault.Config, "%s: %s is not supported by this version", r.Origin[k.key], k.key).WithHint("leave the key out")
		}
	}
	return nil
}
