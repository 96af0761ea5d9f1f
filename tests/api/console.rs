//! The page for browsers: its files are public, its data is not.

use rowplane::http::console::Console;

use crate::support::server::{CONFIGMAPS, Setup};

on_every_store! {
    time_and_sql_66_files_need_no_credential_and_data_does,
    time_and_sql_66_a_server_without_the_page_has_no_such_path,
}

async fn time_and_sql_66_files_need_no_credential_and_data_does(setup: Setup) {
    let server = setup.start_empty().await;
    let nobody = server.anonymous();
    for path in ["/console/", "/console/app.js", "/console/vendor/preact.js"] {
        let answer = nobody.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        let policy = answer.headers["content-security-policy"].to_str().expect("text");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
    }
    for path in [CONFIGMAPS, "/metrics", "/api"] {
        assert!(matches!(nobody.get(path).await.status, 401 | 403), "{path}");
    }
}

async fn time_and_sql_66_a_server_without_the_page_has_no_such_path(mut setup: Setup) {
    setup.console = Console::Off;
    let server = setup.start_empty().await;
    assert_eq!(server.get("/console/").await.status, 404);
    assert!(matches!(server.anonymous().get("/console/").await.status, 401 | 403));
}
