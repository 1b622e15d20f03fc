package commands

// A command is a program and the options it takes (see parseFlags).
type command struct {
	run   func(c *Call, f *flags) int
	flags string
}

const (
	awkFlags  = "+F|field-separator: v|assign: f|file:"
	grepFlags = "i|ignore-case v|invert-match n|line-number c|count l|files-with-matches L|files-without-match " +
		"o|only-matching r|recursive R|dereference-recursive w|word-regexp x|line-regexp q|quiet|silent s|no-messages " +
		"h|no-filename H|with-filename E|extended-regexp F|fixed-strings G|basic-regexp P|perl-regexp a|text " +
		"e|regexp: f|file: A|after-context# B|before-context# C|context# m|max-count# include: exclude: exclude-dir: " +
		"color|colour? line-buffered I Z|null"
	jqFlags = "r|raw-output j|join-output c|compact-output n|null-input s|slurp R|raw-input e|exit-status " +
		"S|sort-keys M|monochrome-output tab indent# f|from-file: arg; argjson; slurpfile;"
	lsFlags  = "1 a|all A|almost-all l h|human-readable R|recursive t S r|reverse d|directory F|classify p color?"
	sumFlags = "b|binary t|text"
)

// table holds the command of each name. Nothing changes it.
var table = map[string]command{
	"awk":       {awk, awkFlags},
	"base64":    {base, "d|D|decode w|wrap# i|ignore-garbage"},
	"basename":  {basename, "+a|multiple s|suffix:"},
	"cat":       {cat, "n|number b|number-nonblank s|squeeze-blank A|show-all E|show-ends T|show-tabs v|show-nonprinting u"},
	"chmod":     {chmod, raw},
	"cp":        {cp, "r|R|recursive a|archive p f|force n|no-clobber v|verbose t|target-directory: T|no-target-directory"},
	"cut":       {cut, "d|delimiter: f|fields: c|characters: b|bytes: s|only-delimited complement output-delimiter:"},
	"date":      {date, "u|utc|universal d|date: I|iso-8601? R|rfc-email r|reference:"},
	"diff":      {diff, "u U|unified# q|brief i|ignore-case w|ignore-all-space b|ignore-space-change a|text L|label: color?"},
	"dirname":   {dirname, ""},
	"echo":      {echo, raw},
	"egrep":     {grep, grepFlags},
	"env":       {env, "+i|ignore-environment u|unset:"},
	"false":     {func(*Call, *flags) int { return 1 }, raw},
	"fgrep":     {grep, grepFlags},
	"find":      {find, raw},
	"gawk":      {awk, awkFlags},
	"grep":      {grep, grepFlags},
	"head":      {head, "-n|lines: c|bytes: q|quiet|silent v|verbose"},
	"hostname":  {say("sandbox"), ""},
	"id":        {say("uid=1000(user) gid=1000(user) groups=1000(user)"), ""},
	"jq":        {jq, jqFlags},
	"ln":        {ln, "s|symbolic f|force n|no-dereference v|verbose t|target-directory: T|no-target-directory"},
	"ls":        {ls, lsFlags},
	"md5sum":    {sum, sumFlags},
	"mkdir":     {mkdir, "p|parents v|verbose m|mode:"},
	"mktemp":    {mktemp, "d|directory"},
	"mv":        {mv, "f|force n|no-clobber v|verbose t|target-directory: T|no-target-directory"},
	"nproc":     {say("1"), ""},
	"paste":     {paste, "d|delimiters: s|serial"},
	"printf":    {printf, raw},
	"pwd":       {pwd, "L P"},
	"readlink":  {readlink, "f|canonicalize"},
	"realpath":  {realpath, ""},
	"rev":       {rev, ""},
	"rm":        {rm, "r|R|recursive f|force v|verbose d|dir i"},
	"rmdir":     {rmdir, ""},
	"sed":       {sed, "n|quiet|silent e|expression: f|file: E|r|regexp-extended i|in-place? u posix"},
	"seq":       {seq, "+w|equal-width s|separator: f|format:"},
	"sha1sum":   {sum, sumFlags},
	"sha256sum": {sum, sumFlags},
	"sha512sum": {sum, sumFlags},
	"sleep":     {sleep, ""},
	"sort": {sortLines, "n|numeric-sort g|general-numeric-sort r|reverse u|unique k|key: t|field-separator: f|ignore-case h|human-numeric-sort " +
		"s|stable b|ignore-leading-blanks o|output:"},
	"stat":    {stat, "c|format:"},
	"tac":     {tac, ""},
	"tail":    {tail, "-n|lines: c|bytes: q|quiet|silent v|verbose"},
	"tee":     {tee, "a|append"},
	"timeout": {timeout, "+s|signal: k|kill-after:"},
	"touch":   {touch, "c|no-create a m d|date: r|reference:"},
	"tr":      {tr, "+d|delete s|squeeze-repeats c|C|complement"},
	"true":    {func(*Call, *flags) int { return 0 }, raw},
	"uname":   {say("Linux"), "s"},
	"uniq":    {uniq, "c|count d|repeated u|unique i|ignore-case f|skip-fields#"},
	"wc":      {wc, "l|lines w|words c|bytes m|chars"},
	"which":   {which, "a"},
	"whoami":  {say("user"), ""},
	"xargs":   {xargs, "+n|max-args# I: 0|null d|delimiter: r|no-run-if-empty P|max-procs#"},
	"yes":     {yes, raw},
}
