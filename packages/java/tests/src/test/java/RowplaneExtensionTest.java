import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import io.rowplane.RowplaneExtension;
import io.rowplane.RowplaneServer;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;

class RowplaneExtensionTest {
    @Nested
    class ServersOfTests {
        private static final Set<String> URLS = ConcurrentHashMap.newKeySet();

        @RegisterExtension
        final RowplaneExtension rowplane = new RowplaneExtension();

        @RepeatedTest(3)
        void areTheirOwn(RowplaneServer server) {
            URLS.add(server.url());
        }

        @AfterAll
        static void differ() {
            assertEquals(3, URLS.size());
        }
    }

    @Nested
    @ExtendWith(RowplaneExtension.class)
    class TheServerOfAClass {
        private static String url;

        @BeforeAll
        static void isThereBeforeTheTests(RowplaneServer server) {
            url = server.url();
        }

        @RepeatedTest(3)
        void isOne(RowplaneServer server) {
            assertEquals(url, server.url());
            assertNotNull(server.kubeconfig());
        }
    }
}
