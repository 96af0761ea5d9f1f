use super::*;

/// The page with its links in capitals, in pieces of so many bytes.
fn in_capitals(page: &str, size: usize) -> String {
    let mut links = Links::new(Vec::new(), Box::new(str::to_uppercase));
    for piece in page.as_bytes().chunks(size) {
        links.write_all(piece).expect("written");
    }
    String::from_utf8(links.finish().expect("finished")).expect("UTF-8")
}

#[test]
fn links_are_found_however_they_are_written() {
    for (page, want) in [
        (r#"<a href="/x">/x</a>"#, r#"<a href="/X">/x</a>"#),
        (r#"<A class=a HREF = '/x' href=/y>"#, r#"<A class=a HREF = '/X' href=/Y>"#),
        (r#"<a href=/x/>"#, r#"<a href=/X/>"#),
        (r#"<a href=/x y/z=1 name href="a>b"/>"#, r#"<a href=/X y/z=1 name href="A>B"/>"#),
        (r#"<img src=a usemap=b longdesc=c alt=d>"#, r#"<img src=A usemap=B longdesc=C alt=d>"#),
        (r#"<p href="/x"><base/href=x>"#, r#"<p href="/x"><base/href=X>"#),
        (r#"</a href="/x"><a href="/x">"#, r#"</a href="/x"><a href="/X">"#),
        (r#"<link href><link href=><link href="">"#, r#"<link href><link href=><link href="">"#),
        (r#"1 < 2 <<a href=b>< a href=b>"#, r#"1 < 2 <<a href=B>< a href=b>"#),
        (r#"<a href="/x"#, r#"<a href="/x"#),
        (r#"<a href=x"#, r#"<a href=x"#),
        ("a<", "a<"),
    ] {
        for size in [1, 2, 3, 1000] {
            assert_eq!(in_capitals(page, size), want, "{size}");
        }
    }
}

#[test]
fn what_only_looks_like_a_link_stays() {
    const LINK: &str = "<a href=x>";
    for before in [
        "<!-- ",
        "<!-- -- >",
        "<!-- --!",
        "<!",
        "<!x",
        "<?",
        "</",
        "</ ",
        "<!-",
        "<!-x",
        "<style>",
        "<title>",
        "<TEXTAREA rows=1>",
        "<xmp><b>",
        "<iframe src=''>",
        "<noscript>",
        "<plaintext>",
        "<plaintext></plaintext>",
        "<script>",
        "<script></scripts>",
        "<script><!--<script></script>",
        "<style/>",
        "<svg/><script>",
        "<a title='",
        "<a title=\"'",
    ] {
        let page = format!("{before}{LINK}");
        for size in [1, 2, 1000] {
            assert_eq!(in_capitals(&page, size), page, "{size}");
        }
    }
    for before in [
        "<!-- -->",
        "<!-->",
        "<!-- --!>",
        "<!>",
        "<!x>",
        "<?x>",
        "</>",
        "</ >",
        "<!--->",
        "<style></style>",
        "<title></a></TITLE >",
        "<textarea></textarea/>",
        "<script></script x='>'>",
        "<svg/><script></script>",
        "<script><!--<script></script>--></script>",
        "<script><!--<script></script></script>",
        "<a title='>'>",
    ] {
        let page = format!("{before}{LINK}");
        for size in [1, 2, 1000] {
            assert_eq!(in_capitals(&page, size), format!("{before}<a href=X>"), "{size}");
        }
    }
}

#[test]
fn a_tag_without_end_takes_no_memory() {
    let mut links = Links::new(Vec::new(), Box::new(str::to_uppercase));
    links.write_all(b"<a href=b href=").expect("written");
    for _ in 0..100 {
        links.write_all(&[b'x'; 10_000]).expect("written");
        assert!(links.tag.text.len() <= LONGEST_TAG && links.passed.is_empty());
    }
    links.write_all(b"><a href=b>").expect("written");
    let page = String::from_utf8(links.finish().expect("finished")).expect("UTF-8");
    assert_eq!(page.len(), 15 + 1_000_000 + 11);
    assert!(page.starts_with("<a href=B href=xxx") && page.ends_with("xxx><a href=B>"));
}
