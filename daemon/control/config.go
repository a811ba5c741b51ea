package control

// ConfigRequest asks how the configuration resolves.
type ConfigRequest struct {
	Daemon bool `json:"daemon,omitzero"` // handoffd.json instead of the store's
}

// ConfigAnswer is where handoffs are stored and why. With Daemon asked for,
// only Values say something.
type ConfigAnswer struct {
	OK      bool    `json:"ok"`
	Action  string  `json:"action"`
	Root    string  `json:"root,omitempty"`
	Source  string  `json:"source,omitempty"` // flag, env, config, discover or default
	File    string  `json:"file"`
	Schema  string  `json:"schema,omitempty"`
	Project string  `json:"project"`
	Linking bool    `json:"linking"`
	Values  []Value `json:"values,omitempty"`
}

// Value is one setting and where it comes from.
type Value struct {
	Key    string `json:"key"`
	Value  any    `json:"value"` // null when unset
	Origin string `json:"origin"`
}

// Lines are the reference's six lines.
func (a ConfigAnswer) Lines() []string {
	or := func(s, alternative string) string {
		if s == "" {
			return alternative
		}
		return s
	}
	linking := "disabled"
	if a.Linking {
		linking = "enabled"
	}
	return []string{
		"handoff: config root=" + a.Root,
		"handoff: config source=" + a.Source,
		"handoff: config file=" + or(a.File, "(or none)"),
		"handoff: config schema=" + a.Schema,
		"handoff: config project=" + or(a.Project, "(or auto-detected)"),
		"handoff: config linking=" + linking,
	}
}
