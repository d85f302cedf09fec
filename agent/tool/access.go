package tool

// Access says which tools a conversation's agent has. What policy forbids stays forbidden whatever it says.
type Access struct {
	Only   []string // names or groups; every command and query if empty
	Extra  []string // names of tools that are off unless they are named here
	Denied []string // names or groups that it does not have, whatever else is said
}
