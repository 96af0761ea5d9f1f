//! Descriptions of parameters in words of our own: upstream's texts of these are in no dependency.

/// The text of a parameter.
pub(super) fn of(name: &str) -> Option<&'static str> {
    TEXTS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The texts by the names of parameters.
const TEXTS: [(&str, &str); 32] = [
    (
        "allowWatchBookmarks",
        "Whether a watch may also get events of type BOOKMARK, which carry nothing but a resourceVersion that \
         the client can go on from. When they come is up to the server. Without a watch it means nothing.",
    ),
    ("command", "The program to run and its arguments, a parameter for each. No shell reads them."),
    ("container", "The container of the Pod. May be left out where the Pod has only one."),
    (
        "continue",
        "The token that the page before this one returned in metadata.continue. All other parameters have to be \
         those of the first page. A token that has expired is answered with 410 and another token, which goes \
         on behind the last key in the newest state; who needs one consistent list starts over without a token. \
         Not for watches.",
    ),
    (
        "fieldManager",
        "The name under which managedFields keep what this request sets: at most 128 printable characters. \
         Required to apply; otherwise it defaults to what the User-Agent says before its first slash.",
    ),
    (
        "fieldSelector",
        "Only objects with these values of fields, for example metadata.name=a. All by default.",
    ),
    (
        "fieldValidation",
        "What becomes of fields in the body that are unknown or there twice. Ignore: unknown ones are dropped \
         and the last of several counts. Warn, the default: the same, and each is told in a Warning header. \
         Strict: the request fails with 400 and names all of them.",
    ),
    ("follow", "Whether the answer goes on with what the container writes from now on. Off by default."),
    (
        "force",
        "Whether an apply takes over fields that others own, instead of failing with a conflict. Only allowed \
         where the request is an apply.",
    ),
    (
        "insecureSkipTLSVerifyBackend",
        "Whether the kubelet's certificate is not verified. Who sits between this server and the kubelet could then \
         make up what is answered.",
    ),
    ("limitBytes", "Ends the answer after so many bytes, which may be in the middle of a line."),
    ("labelSelector", "Only objects with labels that fit, for example app=web,tier!=db. All by default."),
    (
        "limit",
        "At most this many items. Where there are more, metadata.continue has the token that the next page is \
         asked for with; all pages come from the state that the first was cut from. A page may be shorter and \
         still have one after it. Not for watches.",
    ),
    ("namespace", "The namespace that the objects are in."),
    ("path", "The path at the server behind the proxy. What stands in the URL behind `proxy` counts."),
    (
        "ports",
        "Ports of the Pod, a parameter for each. Only for clients that forward over WebSockets without a tunnel.",
    ),
    (
        "previous",
        "Whether the output of the container's last run before this one is asked for. Off by default.",
    ),
    (
        "pretty",
        "If true, JSON comes indented. By default it does where the User-Agent is a browser's, curl's or wget's.",
    ),
    (
        "resourceVersion",
        "Which states may be answered from. Unset: the newest, for a list; 0: any; another: none older, or with \
         resourceVersionMatch=Exact this very one. A watch tells what happened after it. See \
         https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions.",
    ),
    (
        "resourceVersionMatch",
        "How resourceVersion is meant: NotOlderThan or Exact. Should be set wherever a list has a \
         resourceVersion.",
    ),
    (
        "sendInitialEvents",
        "Together with watch=true: whether the watch begins with an ADDED event for each object there is, \
         followed by a bookmark with the annotation k8s.io/initial-events-end. Then resourceVersionMatch has to \
         be NotOlderThan. By default it does, without that bookmark, if resourceVersion is unset or 0.",
    ),
    (
        "shardSelector",
        "Only objects whose hash is in one of these ranges, for example \
         shardRange(object.metadata.uid, '0x0', '0x8000000000000000'). Alpha in Kubernetes, and not served here.",
    ),
    ("sinceSeconds", "Only what was written within so many seconds before now. Not together with sinceTime."),
    ("stderr", "Whether the client gets what the process writes to its standard error."),
    ("stdin", "Whether the client writes to the standard input of the process."),
    ("stdout", "Whether the client gets what the process writes to its standard output."),
    (
        "stream",
        "Which of the container's streams is asked for: All, Stdout or Stderr. Alpha in Kubernetes, and not served \
         here.",
    ),
    ("tailLines", "Begins so many lines before the end. All lines are shown by default."),
    ("timestamps", "Whether each line begins with the time at which it was written. Off by default."),
    ("tty", "Whether the process has a terminal."),
    ("timeoutSeconds", "Ends a list or a watch after so many seconds, whatever is going on."),
    ("watch", "Whether to answer with the changes from resourceVersion on, as a stream, instead of a list."),
];
