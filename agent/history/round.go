package history

import "throwbar.dev/throwbar/agent/model"

// rounds are the places where a repaired history may be cut: before each message of the user, and before each answer of the
// model, which stays with the results of its calls and their images. System messages at the beginning are before the first.
func rounds(messages []message) []int {
	var at []int
	for i, m := range messages {
		switch {
		case m.Role == model.RoleAssistant, m.Role == model.RoleUser && !model.CarriesImages(m):
			at = append(at, i)
		default:
		}
	}
	return at
}

// head is the number of system messages at the beginning.
func head(messages []message) int {
	for i, m := range messages {
		if m.Role != model.RoleSystem {
			return i
		}
	}
	return len(messages)
}
