package app

import "throwbar.dev/throwbar/server/approval"

// composeApprovals puts the desk between callers, who decide, and the dispatcher, which runs what they decide on.
func (s *Server) composeApprovals() {
	s.approvals = approval.New(approval.Config{
		Catalogue: s.catalogue, Store: s.storage, Gate: s.dispatcher, Rules: s.book, Now: s.cfg.Now,
		Device: func(workspace, id string) string {
			d, err := s.directory.Find(workspace, id)
			if err != nil {
				return ""
			}
			return d.Name
		},
	})
}

// reachable says whether somebody follows the approvals who may approve what a principal asks for.
func (s *Server) reachable(workspace, principal string) bool {
	return s.approvals.Reach.Reachable(workspace, principal)
}
