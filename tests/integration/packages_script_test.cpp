#include <gtest/gtest.h>

#include "base/subprocess.hpp"
#include "servers/python_env.hpp"
#include "servers/shell_text.hpp"
#include "support/paths.hpp"

namespace remote::servers {
namespace {

struct PackagesScript : ::testing::Test {
  PackagesScript() {
    config.name = "my pro'ject";
    config.servers.emplace_back();
  }
  // What a sh that ran the text then prints.
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

TEST_F(PackagesScript, OptionsArriveExactly) {
  config.python.find_links = {"my wheels", "https://host/wheels/", "/abs/it's", "~/w"};
  config.python.constraints = {"limits.txt"};
  config.python.index_url = "https://user:pass$1@mirror/simple";
  config.python.no_index = true;
  const std::string out = shell(shell_text(provision_variables(config, config.servers[0])) +
                                shell_text(packages_variables(config)) +
                                ". \"$remote_program/lib/pip_options.sh\"\n"
                                "printf '%s\\n' \"$@\" \"$PIP_INDEX_URL\" \"$KIND\"");
  EXPECT_EQ(out,
            "--no-index\n--find-links\n/ho me/my pro'ject/my wheels\n--find-links\nhttps://host/wheels/\n"
            "--find-links\n/abs/it's\n--find-links\n/ho me/w\n--constraint\n/ho me/my pro'ject/limits.txt\n"
            "https://user:pass$1@mirror/simple\nnone\n");
}

TEST_F(PackagesScript, ActivationWithoutAnEnvironmentLeavesPathAlone) {
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
