package app

import "context"

// agentPlane is the agent as the server runs it.
type agentPlane interface {
	Run(ctx context.Context) error
}

func (s *Server) composeAgent() error { return nil }

func (s *Server) runAgent(ctx context.Context) error {
	if s.agent == nil {
		<-ctx.Done()
		return nil
	}
	return s.agent.Run(ctx)
}
