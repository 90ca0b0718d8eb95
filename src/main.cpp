#include "cli/cli.hpp"

int main(int argc, char** argv) {
  return remote::cli::run(argc, argv);
}
