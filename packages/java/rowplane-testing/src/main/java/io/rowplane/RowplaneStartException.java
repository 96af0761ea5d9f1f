package io.rowplane;

/** The server did not start. The message is the program's own. */
public final class RowplaneStartException extends RuntimeException {
    private static final long serialVersionUID = 1;

    RowplaneStartException(String message) {
        super(message);
    }

    RowplaneStartException(String message, Throwable cause) {
        super(message, cause);
    }
}
