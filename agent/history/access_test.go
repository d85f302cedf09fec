package history_test

import (
	"context"

	"throwbar.dev/throwbar/agent/tool"
)

// Access is everything, always.
func (m *memory) Access(context.Context) (tool.Access, error) { return tool.Access{}, nil }
