#include <string_view>

#include "cli/cli.hpp"
#include "ssh/rsync_tunnel.hpp"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == remote::ssh::rsync_pipe_command) {
    // rsync's words must not meet our options, and nothing of the rest is needed.
    return remote::ssh::serve_rsync_pipe({argv + 2, argv + argc});
  }
  return remote::cli::run(argc, argv);
}
