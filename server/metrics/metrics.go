// Package metrics counts what the server does, and writes it in the text form of Prometheus. It is the only package
// that knows Prometheus: the parts count through small interfaces of their own. Labels are names of the contract and
// of this program, never names, ids or texts of devices and people.
package metrics

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"throwbar.dev/throwbar/server/device"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/event"
	"throwbar.dev/throwbar/server/link"
	"throwbar.dev/throwbar/server/rpc"
	"throwbar.dev/throwbar/server/storage"
)

var (
	_ link.Meter     = (*Metrics)(nil)
	_ dispatch.Meter = (*Metrics)(nil)
	_ device.Meter   = (*Metrics)(nil)
	_ event.Meter    = (*Metrics)(nil)
	_ rpc.Meter      = (*Metrics)(nil)
	_ storage.Meter  = (*Metrics)(nil)
	_ http.Handler   = (*Metrics)(nil)
)

// Metrics are the metrics of one server.
type Metrics struct {
	registry *prometheus.Registry

	opened, ended            *prometheus.CounterVec
	refused, missed, dropped prometheus.Counter
	frames                   prometheus.Counter
	send                     prometheus.Histogram

	age, took *prometheus.HistogramVec

	watchers     prometheus.Gauge
	watchesEnded *prometheus.CounterVec
	requests     *prometheus.GaugeVec
	connections  prometheus.Gauge
	pairings     *prometheus.CounterVec
	called       *prometheus.CounterVec
	turnedAway   *prometheus.CounterVec
	writes       *prometheus.HistogramVec
}

// New makes metrics that are all zero.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.links()
	seconds := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	m.age = m.histograms("dispatch_sent_age_seconds", "Age of a command when it is handed to its device's link.", seconds, "command")
	m.took = m.histograms("dispatch_seconds", "Time from a command's acceptance to its end.", seconds, "command", "state")
	m.watchers = m.gauge("event_watchers", "Callers that follow the event log.")
	m.watchesEnded = m.counters("event_watches_ended_total", "Watches of the event log that ended.", "reason")
	m.requests = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "throwbar_http_streams", Help: "Requests and held streams that are open.",
	}, []string{"protocol"})
	m.registry.MustRegister(m.requests)
	m.pairings = m.counters("pairing_attempts_total", "Attempts to pair: paired, wrong, or throttled without a look.", "result")
	m.called = m.counters("calls_total", "Calls that came through the listener's rules; their tokens are looked at after that.", "procedure")
	m.turnedAway = m.counters("http_refused_total", "Requests that the listener's rules or limits did not let through.", "reason")
	m.connections = m.gauge("http_connections", "Connections that are open.")
	m.writes = m.histograms("store_write_seconds", "Time from a write's request until it is committed.", seconds, "kind")
	return m
}

func (m *Metrics) links() {
	m.opened = m.counters("links_opened_total", "Links that were opened.", "transport")
	m.ended = m.counters("links_ended_total", "Links that have ended.", "transport", "reason")
	m.refused = m.counter("links_refused_total", "Links that were not admitted; the device was told when to come back.")
	m.missed = m.counter("link_heartbeats_missed_total", "Times that a device was silent for longer than a heartbeat and a half.")
	m.dropped = m.counter("link_frames_dropped_total", "Frames that waited when their link ended.")
	m.frames = m.counter("link_frames_sent_total", "Frames that were written to devices.")
	m.send = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "throwbar_link_send_seconds", Help: "Time that the transport takes for one message to a device.",
		Buckets: []float64{.00001, .0001, .001, .01, .1, 1, 10, 60},
	})
	m.registry.MustRegister(m.send)
}

// Watch adds what is looked at when the metrics are read: the load of the links, and how many writes wait.
func (m *Metrics) Watch(load func() link.Load, writes func() int) {
	m.registry.MustRegister(&links{load: load}, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "throwbar_store_queue", Help: "Writes that wait for the store's writer.",
	}, func() float64 { return float64(writes()) }))
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "throwbar_" + name, Help: help})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "throwbar_" + name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "throwbar_" + name, Help: help})
	m.registry.MustRegister(g)
	return g
}

func (m *Metrics) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "throwbar_" + name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

// ServeHTTP writes all metrics.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	if err := m.Write(w); err != nil {
		http.Error(w, "the metrics cannot be gathered", http.StatusInternalServerError)
	}
}

// Write writes all metrics.
func (m *Metrics) Write(w io.Writer) error {
	families, err := m.registry.Gather()
	if err != nil {
		return fmt.Errorf("gather metrics: %w", err)
	}
	encoder := expfmt.NewEncoder(w, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return fmt.Errorf("write metrics: %w", err)
		}
	}
	return nil
}

// LinkOpened implements link.Meter.
func (m *Metrics) LinkOpened(transport string) { m.opened.WithLabelValues(transport).Inc() }

// LinkEnded implements link.Meter.
func (m *Metrics) LinkEnded(transport, reason string) {
	m.ended.WithLabelValues(transport, reason).Inc()
}

// LinkRefused implements link.Meter.
func (m *Metrics) LinkRefused() { m.refused.Inc() }

// FramesSent implements link.Meter.
func (m *Metrics) FramesSent(frames int, took time.Duration) {
	m.frames.Add(float64(frames))
	m.send.Observe(took.Seconds())
}

// FramesDropped implements link.Meter.
func (m *Metrics) FramesDropped(frames int) { m.dropped.Add(float64(frames)) }

// HeartbeatMissed implements link.Meter.
func (m *Metrics) HeartbeatMissed() { m.missed.Inc() }

// CommandSent implements dispatch.Meter.
func (m *Metrics) CommandSent(command string, age time.Duration) {
	m.age.WithLabelValues(command).Observe(age.Seconds())
}

// CommandEnded implements dispatch.Meter.
func (m *Metrics) CommandEnded(command string, state dispatch.State, took time.Duration) {
	m.took.WithLabelValues(command, string(state)).Observe(took.Seconds())
}

// WatchBegan implements event.Meter.
func (m *Metrics) WatchBegan() { m.watchers.Inc() }

// WatchEnded implements event.Meter.
func (m *Metrics) WatchEnded(reason string) {
	m.watchers.Dec()
	m.watchesEnded.WithLabelValues(reason).Inc()
}

// StreamOpened implements rpc.Meter.
func (m *Metrics) StreamOpened(protocol string) { m.requests.WithLabelValues(protocol).Inc() }

// StreamClosed implements rpc.Meter.
func (m *Metrics) StreamClosed(protocol string) { m.requests.WithLabelValues(protocol).Dec() }

// PairingTried implements device.Meter.
func (m *Metrics) PairingTried(result string) { m.pairings.WithLabelValues(result).Inc() }

// Connection counts a connection that opens, or closes.
func (m *Metrics) Connection(opens bool) {
	if opens {
		m.connections.Inc()
		return
	}
	m.connections.Dec()
}

// StoreWrote implements storage.Meter.
func (m *Metrics) StoreWrote(kind string, took time.Duration) {
	m.writes.WithLabelValues(kind).Observe(took.Seconds())
}

// Called implements rpc.Meter.
func (m *Metrics) Called(procedure string) { m.called.WithLabelValues(procedure).Inc() }

// Refused implements rpc.Meter.
func (m *Metrics) Refused(reason string) { m.turnedAway.WithLabelValues(reason).Inc() }
