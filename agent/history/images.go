package history

import (
	"fmt"
	"slices"

	"throwbar.dev/throwbar/agent/model"
)

// How many images a request has, and how large they may be as URLs. Providers take at least that much.
const (
	maxImages      = 6
	maxImageBytes  = 3 << 20
	maxImagesBytes = 5 << 20
)

// Texts that stand for images.
const (
	blindRemark = "(an image was here, which this model cannot see)"
	oldRemark   = "(an image was here; only the newest ones are shown)"
	bigRemark   = "(an image of %.1f MB was here, which is too big to be shown)"
)

// seen returns messages with the images that the model is shown, the newest ones, and a remark for each of the others. Without
// images they are those that it was given.
func seen(messages []message, limits Limits) ([]message, Plan) {
	var plan Plan
	if !slices.ContainsFunc(messages, func(m message) bool { return len(m.Images) > 0 }) {
		return messages, plan
	}
	out := slices.Clone(messages)
	bytes := 0
	for i := len(out) - 1; i >= 0; i-- {
		m := &out[i]
		if len(m.Images) == 0 || m.Role != model.RoleUser && m.Role != model.RoleTool {
			continue
		}
		var kept []string
		for _, image := range slices.Backward(m.Images) {
			plan.OfImages++
			switch {
			case !limits.Images:
				m.Text = remarked(m.Text, blindRemark)
			case len(image) > maxImageBytes:
				m.Text = remarked(m.Text, fmt.Sprintf(bigRemark, float64(len(image))/(1<<20)))
			case plan.Images == maxImages || bytes+len(image) > maxImagesBytes:
				m.Text = remarked(m.Text, oldRemark)
			default:
				kept = append(kept, image)
				plan.Images++
				bytes += len(image)
			}
		}
		slices.Reverse(kept)
		m.Images = kept
	}
	return out, plan
}

func remarked(text, remark string) string {
	if text == "" {
		return remark
	}
	return text + "\n" + remark
}
