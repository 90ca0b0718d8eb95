#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "servers/python_env.hpp"

namespace remote::servers {
namespace {
namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

struct Packages : ::testing::Test {
  Packages() {
    config.project = folder.path();
    config.name = "my pro'ject";
    config.servers.emplace_back();
    config.servers[0].name = "a";
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((folder.path() / name).parent_path());
    std::ofstream(folder.path() / name) << text;
  }
  std::string digest() const { return packages_digest(config); }
  TempFolder folder;
  config::Config config;
};

TEST_F(Packages, TheSourceIsFoundInOrder) {
  EXPECT_EQ(package_source(config), PackageSource::none);
  write("pyproject.toml", "[tool.ruff]\nline-length = 100\n");
  EXPECT_EQ(package_source(config), PackageSource::none);
  write("pyproject.toml", "# mine\n[project]\nname = 'x'\n");
  EXPECT_EQ(package_source(config), PackageSource::pyproject);
  write("requirements.txt", "");
  EXPECT_EQ(package_source(config), PackageSource::requirements);
  write("Pipfile", "");
  EXPECT_EQ(package_source(config), PackageSource::pipenv);
}

TEST_F(Packages, TheDigestSeesAllThatCounts) {
  write("requirements.txt", "torch\n-r sub/more.txt\n--constraint=limits.txt  # why\n-rlast.txt\n");
  write("sub/more.txt", "-c deep.txt\n-r more.txt\n");
  std::vector<std::string> seen = {digest()};
  const auto changed = [&](const std::string& why) {
    EXPECT_THAT(seen, Not(::testing::Contains(digest()))) << why;
    seen.push_back(digest());
    EXPECT_EQ(digest(), seen.back());
  };
  write("sub/deep.txt", "a<2\n");
  changed("a constraint of a requirement, beside it");
  write("limits.txt", "b<2\n");
  changed("a constraint with =");
  write("last.txt", "c\n");
  changed("-r without a space");
  config.python.find_links = {"wheels"};
  changed("find_links");
  write("wheels/a-1-py3-none-any.whl", "x");
  changed("a wheel");
  config.python.no_index = true;
  changed("no_index");
  config.python.index_url = "https://mirror/simple";
  changed("index_url");
  config.python.manager = config::PythonManager::venv;
  changed("manager");
  config.python.version = "3.12";
  changed("version");
  write("train.py", "import torch\n");
  EXPECT_EQ(digest(), seen.back()) << "the code does not count";
}

TEST_F(Packages, PasswordsOfAnIndexStayOutOfCommandLines) {
  config.python.index_url = "https://user:hush@mirror/simple";
  const std::string text = packages_variables(config).text();
  EXPECT_THAT(text.substr(text.find("set --")), Not(HasSubstr("hush")));
}

TEST_F(Packages, EnvironmentsLieWhereTheUserSays) {
  const auto where = [this](config::PythonManager manager, const std::string& environment) {
    config.python.manager = manager;
    config.python.environment = environment;
    return environment_folder(config, config.servers[0]);
  };
  config.name = "p";
  EXPECT_EQ(where(config::PythonManager::conda, ""), "~/miniconda/envs/p_env");
  EXPECT_EQ(where(config::PythonManager::conda, "torch"), "~/miniconda/envs/torch");
  EXPECT_EQ(where(config::PythonManager::conda, "/data/env"), "/data/env");
  EXPECT_EQ(where(config::PythonManager::venv, ""), "~/p/.venv");
  EXPECT_EQ(where(config::PythonManager::uv, "env"), "~/p/env");
  EXPECT_EQ(where(config::PythonManager::venv, "~/env"), "~/env");
}

}  // namespace
}  // namespace remote::servers
