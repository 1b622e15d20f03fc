package ui

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
)

// files lists the stored files, by path.
func (a *API) files(w http.ResponseWriter, r *http.Request) error {
	t, err := a.existing(r)
	if err != nil {
		return err
	}
	all, err := a.Files(r.Context(), t.id)
	if err != nil {
		return err
	}
	type file struct {
		Path  string `json:"path"` // "virtual/notes.txt"
		Bytes int    `json:"bytes"`
	}
	list := []file{}
	for name, data := range all {
		list = append(list, file{name, len(data)})
	}
	slices.SortFunc(list, func(a, b file) int { return cmp.Compare(a.Path, b.Path) })
	return reply(w, http.StatusOK, map[string][]file{"files": list})
}

// file serves one of them as bytes: a browser saves it and runs nothing of it.
func (a *API) file(w http.ResponseWriter, r *http.Request) error {
	t, err := a.existing(r)
	if err != nil {
		return err
	}
	all, err := a.Files(r.Context(), t.id)
	if err != nil {
		return err
	}
	data, ok := all[r.PathValue("path")]
	if !ok {
		return fail(noSuchFile, "there is no such file")
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", "attachment")
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(data) // who has gone needs no answer
	return nil
}
