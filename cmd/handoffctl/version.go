package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
)

// versions is what version --json prints.
type versions struct {
	OK bool `json:"ok"`
	control.Release
	Daemon *control.VersionAnswer `json:"daemon"` // null when none answers
}

func (a *app) version() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the client and of the daemon",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := versions{OK: true, Release: control.ThisRelease()}
			if !a.local {
				var d control.VersionAnswer
				switch err := a.client().Remote(c.Context(), control.Version, &d); {
				case err == nil:
					v.Daemon = &d
				case a.socket != "":
					return err
				case !fault.Is(err, fault.NoDaemon):
					a.note("%v", err)
				}
			}
			if a.json {
				raw, err := control.Encode(v)
				if err != nil {
					return fault.New(fault.Internal, "encode the version: %w", err)
				}
				_, err = a.out.Write(append(raw, '\n'))
				return err
			}
			a.line("handoffctl " + releaseText(v.Release))
			if v.Daemon != nil {
				a.line(fmt.Sprintf("handoffd %s pid=%d store=%s", releaseText(v.Daemon.Release), v.Daemon.PID, v.Daemon.Store))
			}
			return nil
		},
	}
	return exits(c)
}

func releaseText(r control.Release) string {
	text := r.Version
	if len(r.Revision) >= 12 {
		text += " (" + r.Revision[:12] + ")"
	}
	return text + " " + r.Go
}
