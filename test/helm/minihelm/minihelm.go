// minihelm renders a chart as `helm template` does, as far as our chart needs it, for machines without helm:
// Go templates with Sprig, values merged in helm's way (a null removes), `include`, `required`, `toYaml`, `tpl`.
// What is random, of the moment or of the cluster is not defined here, so a chart that uses it fails to parse.
//
//	minihelm CHART RELEASE [VALUES_FILE...]
//
// prints the merged values, which who reads this checks against the schema, as one line of JSON; then each file with its
// text and the objects in it as another. A template that fails is one line on standard error and exit code 1.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/ghodss/yaml"
)

type object = map[string]interface{}

type rendered struct {
	Name    string            `json:"name"`
	Text    string            `json:"text"`
	Objects []json.RawMessage `json:"objects"`
}

// Sprig's functions whose answer differs from one rendering to the next, and those helm takes out itself.
var withheld = []string{
	"env", "expandenv", "now", "date", "dateInZone", "ago", "unixEpoch", "htmlDate", "htmlDateInZone", "uuidv4", "shuffle",
	"randAlpha", "randAlphaNum", "randAscii", "randNumeric", "randBytes", "randInt", "bcrypt", "htpasswd", "derivePassword",
	"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert",
	"genSignedCertWithKey", "buildCustomCert", "encryptAES", "decryptAES", "getHostByName",
}

func main() {
	if len(os.Args) < 3 {
		fail(fmt.Errorf("usage: minihelm CHART RELEASE [VALUES_FILE...]"))
	}
	chart, release := os.Args[1], os.Args[2]
	values := load(filepath.Join(chart, "values.yaml"))
	for _, file := range os.Args[3:] {
		values = merge(values, load(file))
	}
	print(values)
	templates, names := parse(chart)
	top := object{
		"Values":       values,
		"Chart":        capitalized(load(filepath.Join(chart, "Chart.yaml"))),
		"Release":      object{"Name": release, "Namespace": "default", "Service": "Helm", "IsInstall": true, "Revision": 1},
		"Capabilities": object{"KubeVersion": object{"Version": "v1.30.0", "Major": "1", "Minor": "30"}},
	}
	files := []rendered{}
	for _, name := range names {
		if strings.HasPrefix(name, "_") {
			continue
		}
		var text bytes.Buffer
		if err := templates.ExecuteTemplate(&text, name, top); err != nil {
			fail(err)
		}
		clean := strings.ReplaceAll(text.String(), "<no value>", "")
		files = append(files, rendered{Name: name, Text: clean, Objects: objectsOf(name, clean)})
	}
	print(files)
}

func print(value interface{}) {
	text, err := json.Marshal(value)
	check(err)
	fmt.Println(string(text))
}

func parse(chart string) (*template.Template, []string) {
	templates := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	for _, name := range withheld {
		delete(functions, name)
	}
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text bytes.Buffer
		err := templates.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	functions["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	templates.Funcs(functions)
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	names := []string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check(err)
		_, err = templates.New(filepath.Base(path)).Parse(string(text))
		check(err)
		names = append(names, filepath.Base(path))
	}
	sort.Strings(names)
	return templates, names
}

// objectsOf refuses a key that stands twice, as an API server does.
func objectsOf(name string, text string) []json.RawMessage {
	objects := []json.RawMessage{}
	if !strings.HasSuffix(name, ".yaml") {
		return objects
	}
	for _, document := range strings.Split("\n"+text, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		asJSON, err := yaml.YAMLToJSONStrict([]byte(document))
		if err != nil {
			fail(fmt.Errorf("%s: %w", name, err))
		}
		if string(asJSON) != "null" {
			objects = append(objects, asJSON)
		}
	}
	return objects
}

func load(file string) object {
	text, err := os.ReadFile(file)
	check(err)
	values := object{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		fail(fmt.Errorf("%s: %w", file, err))
	}
	return values
}

// merge lays values over others: tables are merged, all else is replaced, a null removes.
func merge(under object, over object) object {
	merged := object{}
	for key, value := range under {
		merged[key] = value
	}
	for key, value := range over {
		below, isTable := merged[key].(object)
		above, isToo := value.(object)
		switch {
		case value == nil:
			delete(merged, key)
		case isTable && isToo:
			merged[key] = merge(below, above)
		default:
			merged[key] = value
		}
	}
	return merged
}

func capitalized(values object) object {
	named := object{}
	for key, value := range values {
		named[strings.ToUpper(key[:1])+key[1:]] = value
	}
	return named
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
