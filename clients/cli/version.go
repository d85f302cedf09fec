package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/view"
)

// versionVerb prints the version.
func (p *program) versionVerb() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of the program",
		GroupID: groupServer,
		Args:    p.takes(),
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version   string `json:"version"`
				Go        string `json:"go"`
				Catalogue string `json:"catalogue"`
			}{p.Version, runtime.Version(), digest(p.Image)}
			if p.flags.json() {
				return p.printValue(v)
			}
			p.out.Print(fmt.Sprintf("throwbar %s (%s, catalogue %.12s)\n", v.Version, v.Go, v.Catalogue))
			return nil
		},
	}
}

// builtAs is the version that the program was built as.
func builtAs() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "development"
	}
	return info.Main.Version
}

// printValue writes a value for a program, indented.
func (p *program) printValue(v any) error { return p.writeValue(v, true) }

// printLine writes a value for a program on one line.
func (p *program) printLine(v any) error { return p.writeValue(v, false) }

func (p *program) writeValue(v any, indent bool) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	if raw, err = view.Tidy(raw, indent); err != nil {
		return err
	}
	p.out.Print(string(raw) + "\n")
	return nil
}
