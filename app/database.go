package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli"
	"throwbar.dev/throwbar/store"
)

const (
	maxURLFile = 64 << 10

	databaseHelp = "`URL` of a PostgreSQL database, postgres://user@host:5432/name (THROWBAR_DATABASE, or a file with it: " +
		"THROWBAR_DATABASE_FILE); SQLite in the data folder if there is none"
)

// databaseFlags say which database a verb is about. The flag has no default, for the help would show the secret in the
// environment's.
type databaseFlags struct{ dataDir, url string }

func (f *databaseFlags) bind(cmd *cobra.Command, env func(string) string) {
	cmd.Flags().StringVar(&f.dataDir, "data-dir", cli.DataDir(env), "`folder` for all data (THROWBAR_DATA_DIR)")
	cmd.Flags().StringVar(&f.url, "database", "", databaseHelp)
}

// config is the store that the flags and the environment name. A flag that names one overrules the environment; --data-dir
// does not, because PostgreSQL's server has a data folder too.
func (f *databaseFlags) config(env func(string) string) (store.Config, error) {
	text, from := f.url, "--database"
	variable, file := env("THROWBAR_DATABASE"), env("THROWBAR_DATABASE_FILE")
	switch {
	case text != "":
	case variable != "" && file != "":
		return store.Config{}, cli.Errorf(cli.Invalid, "THROWBAR_DATABASE and THROWBAR_DATABASE_FILE are both set: set one of them")
	case variable != "":
		text, from = variable, "THROWBAR_DATABASE"
	case file != "":
		raw, err := readURLFile(file)
		if err != nil {
			return store.Config{}, err
		}
		text, from = raw, "THROWBAR_DATABASE_FILE"
	}
	if text != "" && !store.IsPostgres(text) {
		return store.Config{}, cli.Errorf(cli.Invalid, "%s is no URL such as postgres://user@host:5432/name", from)
	}
	return store.Config{Dir: f.dataDir, URL: text}, nil
}

func readURLFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", cli.Errorf(cli.Invalid, "THROWBAR_DATABASE_FILE: %v", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(file, maxURLFile+1))
	if err != nil {
		return "", cli.Errorf(cli.Invalid, "THROWBAR_DATABASE_FILE: %v", err)
	}
	text := strings.TrimSpace(string(raw))
	if len(raw) > maxURLFile || text == "" {
		return "", cli.Errorf(cli.Invalid, "THROWBAR_DATABASE_FILE: %s holds no URL", path)
	}
	return text, nil
}

// transferred is what a verb says that it has copied.
type transferred struct {
	File     string           `json:"file"`
	Database string           `json:"database"`
	Bytes    int64            `json:"bytes,omitempty"`
	Rows     map[string]int64 `json:"rows"`
	order    []string
}

func (t *transferred) add(table string, rows int64) {
	if t.Rows == nil {
		t.Rows = map[string]int64{}
	}
	t.Rows[table] = rows
	t.order = append(t.order, table)
}

func (t *transferred) print(w io.Writer, cmd *cobra.Command, headline string) error {
	if flag := cmd.Flag("output"); flag != nil && flag.Value.String() == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(t)
	}
	text := headline + "\n"
	for _, table := range t.order {
		text += fmt.Sprintf("  %-18s %d rows\n", table, t.Rows[table])
	}
	_, err := io.WriteString(w, text)
	return err
}

func backupCommand(env func(string) string, stdout io.Writer) *cobra.Command {
	var flags databaseFlags
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the SQLite database to a new file, also while the server runs",
		Long: "Copies the SQLite database as it is now to a new file, also while the server runs, and reads the copy before it " +
			"gets its name. To restore it, stop the server and put the file in place of throwbar.db in the data folder, with no " +
			"throwbar.db-wal and throwbar.db-shm beside it. PostgreSQL databases are backed up with pg_dump.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := flags.config(env)
			if err != nil {
				return err
			}
			if config.URL != "" {
				return cli.Errorf(cli.Invalid, "the database is PostgreSQL's: back it up with pg_dump --format=custom --file=%s", args[0])
			}
			copied, err := store.BackupDir(cmd.Context(), config.Dir, args[0])
			if err != nil {
				return databaseError(err, config, args[0])
			}
			out := transferred{File: args[0], Database: config.Dir, Bytes: copied.Bytes}
			for _, t := range copied.Tables {
				out.add(t.Name, t.Rows)
			}
			return out.print(stdout, cmd, fmt.Sprintf("%s: a copy of %d bytes, verified", args[0], copied.Bytes))
		},
	}
	flags.bind(cmd, env)
	return cmd
}

func exportCommand(env func(string) string, stdout io.Writer) *cobra.Command {
	var flags databaseFlags
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Write all data to a file that `throwbar import` reads into either engine",
		Long: "Writes all rows to a new file that `throwbar import` reads into an empty database of either engine, SQLite or " +
			"PostgreSQL. Stop the server first. The file has all that the database has: keep it as secret as that.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := flags.config(env)
			if err != nil {
				return err
			}
			sums, err := store.ExportFile(cmd.Context(), config, args[0])
			if err != nil {
				return databaseError(err, config, args[0])
			}
			out := transferred{File: args[0], Database: place(config)}
			for _, s := range sums {
				out.add(s.Table, s.Rows)
			}
			return out.print(stdout, cmd, fmt.Sprintf("%s: all of %s", args[0], out.Database))
		},
	}
	flags.bind(cmd, env)
	return cmd
}

func importCommand(env func(string) string, stdout io.Writer) *cobra.Command {
	var flags databaseFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Fill an empty database with what `throwbar export` wrote",
		Long: "Fills an empty database with what `throwbar export` wrote, all or nothing, and compares what the database then has " +
			"with the file. Stop the server first. Tokens come along; the file owner.token of the old data folder does not: copy it.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := flags.config(env)
			if err != nil {
				return err
			}
			sums, err := store.ImportFile(cmd.Context(), config, args[0])
			if err != nil {
				return databaseError(err, config, args[0])
			}
			out := transferred{File: args[0], Database: place(config)}
			for _, s := range sums {
				out.add(s.Table, s.Rows)
			}
			return out.print(stdout, cmd, fmt.Sprintf("%s: all of %s, verified", out.Database, args[0]))
		},
	}
	flags.bind(cmd, env)
	return cmd
}

// place is where the database is, in words that have no secret.
func place(config store.Config) string {
	if config.URL == "" {
		return config.Dir
	}
	return store.Redacted(config.URL)
}

// databaseError says what to do.
func databaseError(err error, config store.Config, file string) error {
	switch {
	case errors.Is(err, store.ErrLocked):
		return cli.Errorf(cli.Failed, "%w: stop it first", err)
	case errors.Is(err, fs.ErrExist):
		return cli.Errorf(cli.Invalid, "%s is there already: name another file", file)
	case errors.Is(err, fs.ErrNotExist) && config.URL == "":
		if _, missing := os.Stat(filepath.Dir(file)); missing != nil {
			return cli.Errorf(cli.Invalid, "%w", missing)
		}
		return cli.Errorf(cli.Failed, "%w", err)
	default:
		return cli.Errorf(cli.Failed, "%w", err)
	}
}
