package execute

import "os/exec"

// ownGroup leaves a program as it is: without a group, itself is ended.
func ownGroup(*exec.Cmd) {}
