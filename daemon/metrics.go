package daemon

import (
	"context"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"handoffd/daemon/control"
)

// newMetrics makes the handler of /metrics. It has a registry of its own: what
// the process does otherwise is no business of the socket.
func (d *Daemon) newMetrics() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{d})
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{DisableCompression: true})
}

// collector turns the status into metrics when it is asked.
type collector struct{ d *Daemon }

// figure is one metric.
type figure struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(control.StatusAnswer) float64
}

func gauge(name, help string, value func(control.StatusAnswer) float64) figure {
	return figure{prometheus.NewDesc("handoffd_"+name, help, nil, nil), prometheus.GaugeValue, value}
}

func total(name, help string, value func(control.StatusAnswer) float64) figure {
	return figure{prometheus.NewDesc("handoffd_"+name+"_total", help, nil, nil), prometheus.CounterValue, value}
}

// figures lists every metric without labels.
func figures() []figure {
	type status = control.StatusAnswer
	return []figure{
		gauge("healthy", "1 when nothing is wrong.", func(s status) float64 {
			if s.Healthy {
				return 1
			}
			return 0
		}),
		gauge("uptime_seconds", "Time since the start.", func(s status) float64 { return float64(s.UptimeMS) / 1e3 }),
		gauge("sessions", "Sessions in the store.", func(s status) float64 { return float64(s.Sessions.Total) }),
		gauge("sessions_live", "Sources that changed within the last minutes.", func(s status) float64 { return float64(s.Sessions.Live) }),
		gauge("sessions_damaged", "Sessions whose manifest cannot be read.", func(s status) float64 { return float64(s.Sessions.Damaged) }),
		gauge("sources_behind", "Sources that changed and are not captured yet.", func(s status) float64 { return float64(s.Sessions.Behind) }),
		gauge("quarantined", "Pieces of damage kept aside.", func(s status) float64 { return float64(s.Sessions.Quarantined) }),
		gauge("unknown_records", "Records of a type that no format knows.", func(s status) float64 { return float64(s.Sessions.Unknown) }),
		gauge("queue", "Keys with pending work.", func(s status) float64 { return float64(s.Queue.Queued) }),
		gauge("running", "Captures at work.", func(s status) float64 { return float64(s.Queue.Running) }),
		gauge("failing", "Sources whose last capture failed.", func(s status) float64 { return float64(s.Queue.Failing) }),
		gauge("lag_seconds", "How long the oldest due source has waited.", func(s status) float64 { return float64(s.LagMS) / 1e3 }),
		gauge("sweep_seconds", "Time that the last sweep took.", func(s status) float64 { return float64(s.Scan.TookMS) / 1e3 }),
		gauge("files", "Session files that the last sweep saw.", func(s status) float64 { return float64(s.Scan.Files) }),
		total("captures", "Builds that found something new.", func(s status) float64 { return float64(s.Captures.Built) }),
		total("captured_turns", "Turns captured.", func(s status) float64 { return float64(s.Captures.Turns) }),
		total("unchanged", "Builds that found nothing new.", func(s status) float64 { return float64(s.Captures.Skipped) }),
		total("passed_over", "Sources that are of no use as they are.", func(s status) float64 { return float64(s.Captures.Passed) }),
		total("capture_failures", "Captures that failed.", func(s status) float64 { return float64(s.Captures.Failed) }),
	}
}

// Describe implements prometheus.Collector. Saying nothing makes the registry
// check what Collect gives.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s, err := c.d.Status(context.Background())
	if err != nil {
		return
	}
	for _, f := range figures() {
		out <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(s))
	}
	watched := prometheus.NewDesc("handoffd_source_directories", "Directories watched below a source.", []string{"harness", "mode", "root"}, nil)
	for _, src := range s.Sources {
		if m, err := prometheus.NewConstMetric(watched, prometheus.GaugeValue, float64(src.Dirs), src.Harness, src.Mode, strings.ToValidUTF8(src.Root, "\ufffd")); err == nil {
			out <- m
		}
	}
}
