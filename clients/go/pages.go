package throwbar

import "iter"

// Pages yields the rows of a list, page after page. ask gets the token of a page, empty for the first, and returns its
// rows and the token of the next page, empty after the last. An error is the last thing that is yielded:
//
//	for device, err := range throwbar.Pages(func(token string) ([]*controlv1.Device, string, error) {
//		res, err := client.Devices.ListDevices(ctx, &controlv1.ListDevicesRequest{PageToken: &token})
//		return res.GetDevices(), res.GetNextPageToken(), err
//	}) {
//
// Leaving the loop asks for no further page.
func Pages[T any](ask func(token string) (rows []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for token := ""; ; {
			rows, next, err := ask(token)
			if err != nil {
				yield(none, err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			switch next {
			case "":
				return
			case token:
				yield(none, Errorf(CodeInternal, "the server gave the same page token twice"))
				return
			}
			token = next
		}
	}
}
