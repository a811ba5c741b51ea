//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package watch

// usable is false where events come from kqueue: it holds every file of a
// watched directory open, which this package promises never to do and which
// runs out of descriptors. Such roots are polled.
const usable = false
