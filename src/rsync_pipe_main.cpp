// What the local rsync starts as its remote shell (ssh/rsync_tunnel.hpp), for programs that link the library.
#include "ssh/rsync_tunnel.hpp"

int main(int argc, char** argv) {
  // the first word is rsync_pipe_command, by which the `remote` program knows that it is meant as this one
  return remote::ssh::serve_rsync_pipe({argv + (argc > 1 ? 2 : 1), argv + argc});
}
