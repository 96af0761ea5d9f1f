package main

import (
	"fmt"
	"math"
	"net/netip"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"gopkg.in/inf.v0"

	apiservercel "k8s.io/apiserver/pkg/cel"
)

// A text that only equal values have in common, in the words of crates/cel (src/value/display.rs).
func canonical(value ref.Val) string {
	switch value := value.(type) {
	case types.Null:
		return "null"
	case types.Bool:
		return strconv.FormatBool(bool(value))
	case types.Int:
		return strconv.FormatInt(int64(value), 10)
	case types.Uint:
		return strconv.FormatUint(uint64(value), 10) + "u"
	case types.Double:
		if math.IsNaN(float64(value)) {
			return "double(NaN)"
		}
		return fmt.Sprintf("double(%v)", float64(value))
	case types.String:
		return strconv.Quote(string(value))
	case types.Bytes:
		return fmt.Sprintf("b\"%x\"", []byte(value))
	case types.Timestamp:
		return "timestamp(" + value.UTC().Format(time.RFC3339Nano) + ")"
	case types.Duration:
		return fmt.Sprintf("duration(%d)", value.Nanoseconds())
	case *types.Optional:
		if !value.HasValue() {
			return "optional.none()"
		}
		return "optional(" + canonical(value.GetValue()) + ")"
	case *types.Type:
		return "type(" + value.TypeName() + ")"
	case *types.Err:
		return "error(" + value.Error() + ")"
	case apiservercel.Quantity:
		return quantity(value)
	case *apiservercel.Quantity:
		return quantity(*value)
	case apiservercel.IP:
		return "ip(" + value.Addr.String() + ")"
	case apiservercel.CIDR:
		return "cidr(" + netip.PrefixFrom(value.Addr(), value.Bits()).String() + ")"
	case apiservercel.URL:
		return "url(" + value.URL.String() + ")"
	case apiservercel.Semver:
		return "semver(" + value.Version.String() + ")"
	case apiservercel.Format:
		return "format(" + value.Name + ")"
	case *apiservercel.Format:
		return "format(" + value.Name + ")"
	case traits.Lister:
		var items []string
		for i := types.Int(0); i < value.Size().(types.Int); i++ {
			items = append(items, canonical(value.Get(i)))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case traits.Mapper:
		var entries []string
		for it := value.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			if found, ok := value.Find(key); ok {
				entries = append(entries, canonical(key)+": "+canonical(found))
			}
		}
		sort.Strings(entries)
		return "{" + strings.Join(entries, ", ") + "}"
	}
	return fmt.Sprintf("%T", value)
}

func quantity(value apiservercel.Quantity) string {
	nanos := new(inf.Dec).Round(value.AsDec(), 9, inf.RoundExact)
	return "quantity(" + nanos.UnscaledBig().String() + ")"
}
