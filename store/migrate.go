package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// The two folders have the same numbers, which make the same tables and columns.
//
//go:embed migrations
var migrations embed.FS

// migrate brings the database to the newest version, and refuses one that is newer still.
func migrate(ctx context.Context, dialect goose.Dialect, pool *sql.DB) error {
	provider, err := migrator(dialect, pool)
	if err != nil {
		return err
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return fmt.Errorf("%w: its version is %d, the newest known is %d", ErrNewer, current, target)
	}
	_, err = provider.Up(ctx)
	return err
}

func migrator(dialect goose.Dialect, pool *sql.DB) (*goose.Provider, error) {
	name := "migrations/sqlite"
	if dialect == goose.DialectPostgres {
		name = "migrations/postgres"
	}
	folder, err := fs.Sub(migrations, name)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, pool, folder, goose.WithDisableGlobalRegistry(true))
}
