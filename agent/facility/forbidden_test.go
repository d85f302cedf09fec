package facility_test

import (
	"context"

	"throwbar.dev/throwbar/agent/facility"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// Withdraw finds nothing that was begun.
func (u *undoer) Withdraw(context.Context, facility.Undo, string) (*controlv1.UndoResponse, error) {
	return nil, nil
}
