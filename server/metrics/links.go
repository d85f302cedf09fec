package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"throwbar.dev/throwbar/server/link"
)

// links looks at all links once for each reading.
type links struct{ load func() link.Load }

func (*links) descs() (open, frames, bytes, deepest *prometheus.Desc) {
	return prometheus.NewDesc("throwbar_links", "Links that stand.", []string{"transport"}, nil),
		prometheus.NewDesc("throwbar_link_queue_frames", "Frames that wait to be written, over all links.", nil, nil),
		prometheus.NewDesc("throwbar_link_queue_bytes", "Bytes that wait to be written, over all links.", nil, nil),
		prometheus.NewDesc("throwbar_link_queue_deepest", "Frames that wait for the device with the longest queue.", nil, nil)
}

// Describe implements prometheus.Collector.
func (l *links) Describe(out chan<- *prometheus.Desc) {
	open, frames, bytes, deepest := l.descs()
	out <- open
	out <- frames
	out <- bytes
	out <- deepest
}

// Collect implements prometheus.Collector.
func (l *links) Collect(out chan<- prometheus.Metric) {
	load := l.load()
	open, frames, bytes, deepest := l.descs()
	for transport, n := range load.Links {
		out <- prometheus.MustNewConstMetric(open, prometheus.GaugeValue, float64(n), transport)
	}
	out <- prometheus.MustNewConstMetric(frames, prometheus.GaugeValue, float64(load.Frames))
	out <- prometheus.MustNewConstMetric(bytes, prometheus.GaugeValue, float64(load.Bytes))
	out <- prometheus.MustNewConstMetric(deepest, prometheus.GaugeValue, float64(load.Deepest))
}
