package main

import "github.com/heddlehq/heddle/channels/github"

type githubAccess struct {
	Members     string   `yaml:"members" doc:"Least permission on the repository: read, triage, write, maintain or admin; write if not set. Everybody may read what is public."`
	Maintainers string   `yaml:"maintainers" doc:"Likewise; nobody if not set."`
	Admins      []string `yaml:"admins" doc:"User ids, which are numbers."`
}

func (f *fileSettings) githubAccess() github.Access {
	a := f.access.GitHub
	return github.Access{Members: a.Members, Maintainers: a.Maintainers, Admins: a.Admins}
}

// holders are whoever has the permission, in words.
func (a githubAccess) holders() holders {
	of := func(permission string) []string {
		if permission == "" {
			return nil
		}
		return []string{permission + " permission on the repository"}
	}
	return holders{of(a.Members), of(a.Maintainers), a.Admins}
}
