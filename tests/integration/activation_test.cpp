#include <gtest/gtest.h>

#include "base/subprocess.hpp"
#include "servers/python_env.hpp"
#include "support/paths.hpp"

namespace remote::servers {
namespace {

struct Activation : ::testing::Test {
  Activation() {
    config.name = "my pro'ject";
    config.servers.emplace_back();
  }
  // The output of a shell that runs the text.
  static std::string shell(const std::string& text) {
    SubprocessSpec spec;
    spec.argv = {"sh", "-s"};
    spec.set_env = {{"HOME", "/ho me"},
                    {"PATH", "/usr/bin:/bin"},
                    {"PYTHONPATH", ""},
                    {"remote_program", test::source_folder + std::string("/src/server")}};
    const ExecResult result = run_subprocess(spec, text);
    EXPECT_EQ(result.err, "");
    return result.out;
  }
  config::Config config;
};

TEST_F(Activation, LeavesPathAloneWithoutAnEnvironment) {
  for (const auto manager : {config::PythonManager::conda, config::PythonManager::venv,
                             config::PythonManager::uv, config::PythonManager::system}) {
    config.python.manager = manager;
    EXPECT_EQ(
        shell("set -eu\n" + activation(config, config.servers[0]) +
              "echo \"$PATH\"; echo \"$PYTHONPATH\"; echo \"${VIRTUAL_ENV-}${CONDA_PREFIX-}${__env-}\"\n"),
        "/usr/bin:/bin\n/ho me/my pro'ject:/ho me/my pro'ject/src\n\n");
  }
}

}  // namespace
}  // namespace remote::servers
