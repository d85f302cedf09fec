package term

import (
	"fmt"
	"time"
)

const day = 24 * time.Hour

// When says how long ago, or how far ahead, a time is. A time that is not set is "never".
func When(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	age := now.Sub(t)
	switch {
	case age > 14*day:
		return t.Local().Format(time.DateOnly)
	case age >= 5*time.Second:
		return Span(age) + " ago"
	case age > -5*time.Second:
		return "just now"
	default:
		return "in " + Span(-age)
	}
}

// Span is a duration in its largest unit, rounded.
func Span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute-time.Second/2:
		return fmt.Sprintf("%d s", d.Round(time.Second)/time.Second)
	case d < time.Hour-time.Minute/2:
		return fmt.Sprintf("%d min", d.Round(time.Minute)/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h", d.Round(time.Hour)/time.Hour)
	default:
		return fmt.Sprintf("%d d", d.Round(day)/day)
	}
}
