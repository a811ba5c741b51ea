package permission

// Builtin is the policy of those who wrote none: everything in the workspace,
// nothing in the homes of people, system directories to read. What a user
// names on a command line is approved, so that normal use needs no policy.
// goos is as in runtime.GOOS; home is "" when unknown; workspace is "" when no
// directory may be approved as a whole.
func Builtin(goos, workspace, home string) Policy {
	p := Policy{
		SchemaVersion:      SchemaVersion,
		ApprovedWorkspaces: []string{}, PersonalDataRoots: []string{}, DeniedRoots: []string{},
		SystemReadOnlyRoots: systemRoots(goos),
		Grants: map[Level]string{
			DiscoveryOnly: GrantAllow, ReadOnly: GrantAllow, WorkspaceWrite: GrantAllow,
			ExternalEffect: GrantNeedsAuth, Destructive: GrantNeedsAuth, Irreversible: GrantNeedsAuth,
		},
		RiskToLevel: map[Risk]Level{R0: ReadOnly, R1: WorkspaceWrite, R2: ExternalEffect, R3: Destructive, R4: Irreversible},
		Program:     DefaultProgram, MaxOutputBytes: DefaultMaxOutputBytes,
		Retention: Retention{DefaultRecords, DefaultDays}, NamedTargets: NamedAllow,
	}
	if workspace != "" {
		p.ApprovedWorkspaces = append(p.ApprovedWorkspaces, workspace)
	}
	if home != "" {
		p.PersonalDataRoots = append(p.PersonalDataRoots, home)
	}
	p.PersonalDataRoots = append(p.PersonalDataRoots, homes(goos)...)
	return p
}

// systemRoots are where the system and its programs are.
func systemRoots(goos string) []string {
	switch goos {
	case "windows":
		return []string{`C:\Windows`, `C:\Program Files`, `C:\Program Files (x86)`}
	case "darwin":
		return []string{"/usr", "/etc", "/bin", "/sbin", "/opt", "/System", "/Library", "/Applications"}
	}
	return []string{"/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"}
}

// homes are where people's directories are, besides the user's own.
func homes(goos string) []string {
	switch goos {
	case "windows":
		return []string{`C:\Users`}
	case "darwin":
		return []string{"/Users", "/var/root"}
	}
	return []string{"/home", "/root"}
}
