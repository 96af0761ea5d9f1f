// /bin/sh of the busybox image: busybox's ash, as in upstream's image; a test knows it by the words of its errors.
// Debian's ash drops variables whose name has a dash, and upstream's does not; tests run `sh -c env` to see those.
// This command alone is given to bash, which keeps them.
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	int is_env = count == 3 && !strcmp(arguments[1], "-c") && !strcmp(arguments[2], "env");

	if (is_env)
		execv("/bin/bash", arguments);
	execv("/bin/ash", arguments);
	return 127;
}
