//! What parameters mean, in words of our own: upstream's texts of these are in no dependency.

/// The text of a parameter.
pub(super) fn of(name: &str) -> Option<&'static str> {
    Some(match name {
        "allowWatchBookmarks" => {
            "Whether a watch may also get events of type BOOKMARK, which carry nothing but a resourceVersion that \
             the client can go on from. When they come is up to the server. Without a watch it means nothing."
        }
        "continue" => {
            "The token that the page before this one returned in metadata.continue. All other parameters have to be \
             those of the first page. A token that has expired is answered with 410 and another token, which goes \
             on behind the last key in the newest state; who needs one consistent list starts over without a token. \
             Not for watches."
        }
        "fieldManager" => {
            "The name under which managedFields keep what this request sets: at most 128 printable characters. \
             Required to apply; otherwise it defaults to what the User-Agent says before its first slash."
        }
        "fieldSelector" => {
            "Only objects with these values of fields, for example metadata.name=a. All by default."
        }
        "fieldValidation" => {
            "What becomes of fields in the body that are unknown or there twice. Ignore: unknown ones are dropped \
             and the last of several counts. Warn, the default: the same, and each is told in a Warning header. \
             Strict: the request fails with 400 and names all of them."
        }
        "force" => {
            "Whether an apply takes over fields that others own, instead of failing with a conflict. Only allowed \
             where the request is an apply."
        }
        "labelSelector" => "Only objects with labels that fit, for example app=web,tier!=db. All by default.",
        "limit" => {
            "At most this many items. Where there are more, metadata.continue has the token that the next page is \
             asked for with; all pages come from the state that the first was cut from. A page may be shorter and \
             still have one after it. Not for watches."
        }
        "namespace" => "The namespace that the objects are in.",
        "pretty" => {
            "If true, JSON comes indented. By default it does where the User-Agent is a browser's, curl's or wget's."
        }
        "resourceVersion" => {
            "Which states may be answered from. Unset: the newest, for a list; 0: any; another: none older, or with \
             resourceVersionMatch=Exact this very one. A watch tells what happened after it. See \
             https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions."
        }
        "resourceVersionMatch" => {
            "How resourceVersion is meant: NotOlderThan or Exact. Should be set wherever a list has a \
             resourceVersion."
        }
        "sendInitialEvents" => {
            "Together with watch=true: whether the watch begins with an ADDED event for each object there is, \
             followed by a bookmark with the annotation k8s.io/initial-events-end. Then resourceVersionMatch has to \
             be NotOlderThan. By default it does, without that bookmark, if resourceVersion is unset or 0."
        }
        "shardSelector" => {
            "Only objects whose hash is in one of these ranges, for example \
             shardRange(object.metadata.uid, '0x0', '0x8000000000000000'). Alpha in Kubernetes, and not served here."
        }
        "timeoutSeconds" => "Ends a list or a watch after so many seconds, whatever is going on.",
        "watch" => {
            "Whether to answer with the changes from resourceVersion on, as a stream, instead of a list."
        }
        _ => return None,
    })
}
