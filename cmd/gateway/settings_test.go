package main

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/heddlehq/heddle/config"
)

//go:generate go test -run TestSettingsReference -update-settings .
var updateSettings = flag.Bool("update-settings", false, "write docs/settings.md")

// TestSettingsReference keeps docs/settings.md equal to the declarations.
func TestSettingsReference(t *testing.T) {
	t.Parallel()
	const path = "../../docs/settings.md"
	var b bytes.Buffer
	if err := config.Markdown(&b, vars); err != nil {
		t.Fatal(err)
	}
	if *updateSettings {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, b.Bytes()) {
		t.Fatalf("%s is not what the declarations say (%v): run make generate", path, err)
	}
}
