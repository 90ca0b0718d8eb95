// The local rsync starts this as its remote shell (ssh/rsync_tunnel.hpp), for programs that link the library.
#include "ssh/rsync_tunnel.hpp"

int main(int argc, char** argv) {
  // The first argument is rsync_pipe_command, which the `remote` program needs in order to act as the pipe.
  return remote::ssh::serve_rsync_pipe({argv + (argc > 1 ? 2 : 1), argv + argc});
}
