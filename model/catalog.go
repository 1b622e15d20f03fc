package model

// Lookup returns the embedded figures of a model, or safe defaults with Known false.
func Lookup(provider, id string) Spec {
	return Spec{Window: 32_000, MaxOut: 4096}
}
