package model

import "bytes"

// encode is the body of a request in one piece.
func (c *Client) encode(request Request) ([]byte, error) {
	body, err := c.body(request)
	return bytes.Join(body, nil), err
}
