package render

import (
	"fmt"
	"testing"
)

func TestShow(t *testing.T) {
	in := inputOf(small())
	fmt.Println(string(Brief(in)))
	s, _ := Summary(in)
	fmt.Println(string(s))
	h, _ := PayloadHead(in)
	fmt.Println(string(h[len(h)-300:]))
	e, _ := in.D.Encode()
	fmt.Println(len(e))
}
