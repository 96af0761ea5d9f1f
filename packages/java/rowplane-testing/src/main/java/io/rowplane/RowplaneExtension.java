package io.rowplane;

import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Hands a {@link RowplaneServer} to tests of JUnit 5 that have a parameter of this type.
 *
 * <p>On a class ({@code @ExtendWith(RowplaneExtension.class)}) or in a static field, the tests of the class share a server; in a field
 * of the instance, each test has an empty one of its own:
 *
 * <pre>{@code
 * @RegisterExtension
 * final RowplaneExtension rowplane = new RowplaneExtension(RowplaneServer.builder().crds(Path.of("config/crd")));
 * }</pre>
 */
public final class RowplaneExtension
        implements BeforeAllCallback, AfterAllCallback, BeforeEachCallback, AfterEachCallback, ParameterResolver {
    private final RowplaneServer.Builder builder;

    /** An extension whose servers have no definitions and no flags. */
    public RowplaneExtension() {
        this(RowplaneServer.builder());
    }

    /**
     * An extension whose servers are started by this builder.
     *
     * @param builder the definitions and flags of the servers
     */
    public RowplaneExtension(RowplaneServer.Builder builder) {
        this.builder = builder;
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        start(context);
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        // The class's is found from the context of a test, too.
        if (server(context) == null) {
            start(context);
        }
    }

    @Override
    public void afterEach(ExtensionContext context) {
        stop(context);
    }

    @Override
    public void afterAll(ExtensionContext context) {
        stop(context);
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == RowplaneServer.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return server(context);
    }

    private RowplaneServer server(ExtensionContext context) {
        return store(context).get(RowplaneServer.class, RowplaneServer.class);
    }

    private void start(ExtensionContext context) {
        store(context).put(RowplaneServer.class, builder.start());
    }

    /** Stops the server of just this context: nothing is removed from a context above. */
    private void stop(ExtensionContext context) {
        RowplaneServer server = store(context).remove(RowplaneServer.class, RowplaneServer.class);
        if (server != null) {
            server.stop();
        }
    }

    private ExtensionContext.Store store(ExtensionContext context) {
        return context.getStore(Namespace.create(RowplaneExtension.class, this));
    }
}
