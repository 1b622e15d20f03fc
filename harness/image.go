package harness

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"net/http"
	"slices"
)

// Bounds of images that a model is shown, see [model.Part].
const (
	MostImageBytes = 3 << 20
	mostImages     = 8    // of one call
	mostPixels     = 8000 // either way: what Anthropic takes
)

// An Image is one in the result of a call.
type Image struct {
	Media string // "image/png", "image/jpeg" or "image/webp"
	Data  []byte
}

// ImageOf looks at what is in a file. It fails if that is no image which models
// are shown: a PNG, JPEG or WebP of at most MostImageBytes. The error is good
// for a model to read.
func ImageOf(data []byte) (Image, error) {
	media := http.DetectContentType(data)
	var read func(*bytes.Reader) (image.Config, error)
	switch media {
	case "image/png":
		read = func(r *bytes.Reader) (image.Config, error) { return png.DecodeConfig(r) }
	case "image/jpeg":
		read = func(r *bytes.Reader) (image.Config, error) { return jpeg.DecodeConfig(r) }
	case "image/webp":
		read = func(*bytes.Reader) (image.Config, error) { return image.Config{Width: 1, Height: 1}, nil } // the provider has to
	default:
		return Image{}, errNoImage
	}
	if len(data) > MostImageBytes {
		return Image{}, fmt.Errorf("too large to be shown: %s, and %s is the most", Size(int64(len(data))), Size(MostImageBytes))
	}
	switch c, err := read(bytes.NewReader(data)); {
	case err != nil:
		return Image{}, errors.New("not shown: the image is damaged")
	case c.Width < 1 || c.Height < 1 || c.Width > mostPixels || c.Height > mostPixels:
		return Image{}, fmt.Errorf("not shown: the image has %d by %d pixels, and %d are the most either way", c.Width, c.Height, mostPixels)
	}
	return Image{Media: media, Data: data}, nil
}

var errNoImage = errors.New("not shown: it is no PNG, JPEG or WebP image")

// IsImage says whether a file looks like an image of a kind that ImageOf takes.
func IsImage(data []byte) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/webp"}, http.DetectContentType(data))
}

// Size is a number of bytes for people and models: "30.5 MB".
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.4g KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.4g MB", float64(n)/(1<<20))
}

// Show adds an image to the result of this call: a model that looks at images
// sees it after the results of the step. It fails, with an error that is good
// for a model to read, for what is no such image or one too many. Only in a
// tool's call.
func (c *Call) Show(data []byte) error {
	i, err := ImageOf(data)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.images) == mostImages {
		return fmt.Errorf("not shown: a call shows at most %d images", mostImages)
	}
	c.images = append(c.images, i)
	return nil
}

// Images are those that Show was given.
func (c *Call) Images() []Image {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.images)
}
