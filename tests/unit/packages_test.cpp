#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "servers/package_files.hpp"
#include "servers/python_env.hpp"

namespace remote::servers {
namespace {
namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
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
  std::string digest() const { return package_sources(config).digest; }
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
    EXPECT_THAT(seen, Not(Contains(digest()))) << why;
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
  write("wheels/a-1-py3-none-any.whl", "y");
  changed("a wheel that was built again, with the same size");
  write("wheels/a-1-py3-none-any.whl", std::string(5'000'000, 'x') + "1");
  changed("a large wheel");
  write("wheels/a-1-py3-none-any.whl", std::string(5'000'000, 'x') + "2");
  changed("a large wheel with another end");
  for (const char* end : {"tgz", "tar.bz2", "tar.xz", "TAR.GZ", "tbz", "txz"}) {
    const std::string name = std::string("libs/p-1.0.") + end;
    write("deep.txt", "./" + name + "\n");
    write("sub/more.txt", "-c deep.txt\n-r more.txt\n-r ../deep.txt\n");
    write(name, "1");
    changed(name);
    write(name, "2");
    changed(name + " was built again");
  }
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

// They are read as pip reads them, no matter which tool wrote them.
TEST_F(Packages, FilesThatRequirementsNameAreFound) {
  using Kind = RequirementPlace::Kind;
  const std::vector<std::pair<const char*, std::vector<RequirementPlace>>> texts = {
      {"  -r base.txt  # why", {{Kind::requirements, "base.txt"}}},
      {"-r 'my base.txt'", {{Kind::requirements, "my base.txt"}}},
      {"--requirement \"base.txt\"", {{Kind::requirements, "base.txt"}}},
      {"-rbase.txt\r\n-cl.txt\r\n", {{Kind::requirements, "base.txt"}, {Kind::requirements, "l.txt"}}},
      {"-r \\\nbase.txt", {{Kind::requirements, "base.txt"}}},
      {"--constraint=limits.txt", {{Kind::requirements, "limits.txt"}}},
      {"-e ./libs/p", {{Kind::editable, "./libs/p"}}},
      {"-e libs/p[extra]#egg=p", {{Kind::editable, "libs/p"}}},
      {"--editable=.", {{Kind::editable, "."}}},
      {"./libs/p", {{Kind::package, "./libs/p"}}},
      {"./libs/p[fast] ; python_version > '3'", {{Kind::package, "./libs/p"}}},
      {"p @ file:libs/p", {{Kind::package, "libs/p"}}},
      {"p @ file:///opt/p", {{Kind::package, "/opt/p"}}},
      {"p@file://localhost/opt/p", {{Kind::package, "/opt/p"}}},
      {"-e file:///opt/p#egg=p", {{Kind::editable, "/opt/p"}}},
      {"p @ file://elsewhere/opt/p", {}},
      {"libs/p --config-settings x=y", {{Kind::package, "libs/p"}}},
      {"wheels/p-1-py3-none-any.whl", {{Kind::package, "wheels/p-1-py3-none-any.whl"}}},
      {"p-1-py3-none-any.whl", {{Kind::package, "p-1-py3-none-any.whl"}}},
      {"p-1.tgz\np-2.tar.bz2", {{Kind::package, "p-1.tgz"}, {Kind::package, "p-2.tar.bz2"}}},
      {"-f ./wheels --no-index", {{Kind::links, "./wheels"}}},
      {"--find-links wheels\ntorch", {{Kind::links, "wheels"}}},
      {"torch>=2 # -r no.txt\n# -r no.txt\n#-r no.txt \\\n-r yes.txt", {{Kind::requirements, "yes.txt"}}},
      {"https://example.org/a/b.whl\np @ https://example.org/p.zip\ngit+https://example.org/p", {}},
      {"-r https://example.org/base.txt\n-r ${HOME}/x.txt\n--index-url https://example.org/simple", {}},
      {"numpy==1.2\ntorch[extra]\n--hash=sha256:abc\n", {}}};
  for (const auto& [text, places] : texts) {
    EXPECT_EQ(requirement_places(text), places) << text;
  }
}

TEST(Requirements, NameAModuleAsPipComparesNames) {
  const std::string text = "-r base.txt\nnumpy==1.2\n# torch\nDemo.Lib[extra]>=1 ; python_version > '3'\n";
  EXPECT_TRUE(requires_module(text, "numpy"));
  EXPECT_TRUE(requires_module(text, "demo_lib"));
  for (const char* other : {"torch", "num", "demo", "base", ""}) {
    EXPECT_FALSE(requires_module(text, other)) << other;
  }
}

TEST_F(Packages, TheDigestReadsRequirementsAsPipDoes) {
  write("requirements.txt", "\xef\xbb\xbf-r base.txt\n");
  write("base.txt", "  -r 'more.txt'\n-c \\\n  limits.txt\n");
  std::string before = digest();
  for (const char* name : {"base.txt", "more.txt", "limits.txt"}) {
    std::ofstream(folder.path() / name, std::ios::app) << "\nnumpy\n";
    EXPECT_NE(digest(), before) << name;
    before = digest();
  }
}

// A project package whose code is used in place.
TEST_F(Packages, AnEditablePackageCountsByWhatDescribesIt) {
  write("requirements.txt", "-e ./libs/p\n");
  write("libs/p/pyproject.toml", "[project]\nname = 'p'\ndependencies = []\n");
  std::string before = digest();
  const auto changes = [&](const char* why) {
    EXPECT_NE(digest(), before) << why;
    before = digest();
  };
  write("libs/p/pyproject.toml", "[project]\nname = 'p'\ndependencies = ['q']\n");
  changes("a new dependency");
  write("libs/p/p/__init__.py", "1\n");
  EXPECT_EQ(digest(), before) << "its code";
  write("libs/p/setup.py", "open('reqs/base.txt')\n");
  changes("setup.py");
  write("libs/p/reqs/base.txt", "numpy\n");
  changes("a file that it reads");
  write("libs/p/setup.py",
        "# the project's\nhere = '.'\nopen(os.path.join(here, 'deps', r\"base.txt\"))\n"
        "open(Path('x') / 'deps' / 'dev.in')\n");
  write("libs/p/base.txt", "not this one\n");
  write("libs/p/dev.in", "not this one\n");
  changes("another setup.py");
  write("libs/p/deps/base.txt", "numpy\n");
  changes("a file whose name is joined");
  write("libs/p/deps/dev.in", "numpy\n");
  changes("a file whose name is joined by an operator");
  write("libs/p/other.txt", "1\n");
  EXPECT_EQ(digest(), before) << "a file that it does not name";
  write("libs/p/pyproject.toml", "[tool.uv.sources]\nr = { path = \"../r\", editable = true }\n");
  changes("a package beside it");
  write("libs/r/setup.cfg", "[metadata]\n");
  changes("what describes that one");
}

TEST_F(Packages, AFileWithTheProjectsDependenciesCounts) {
  const auto expect_counts = [this](const char* description, const std::string& text) {
    write(description, text);
    write("deps.txt", "numpy\n");
    const std::string before = digest();
    write("deps.txt", "numpy\ntorch\n");
    EXPECT_NE(digest(), before) << description;
  };
  expect_counts("pyproject.toml",
                "[project]\nname = 'p'\ndynamic = ['dependencies']\n[tool.setuptools.dynamic]\n"
                "dependencies = {file = [\"deps.txt\"]}\n");
  ASSERT_EQ(package_source(config), PackageSource::pyproject);
  write("pyproject.toml", "[project]\nname = 'p'\ndynamic = ['dependencies']\n");
  expect_counts("setup.py", "setup(install_requires=open('deps.txt').read().split())\n");
}

// These are read on the server: package_files() knows only their names.
TEST_F(Packages, PlacesOutsideTheProjectAreNamed) {
  write("requirements.txt",
        "-r more/all.txt\n-c /etc/limits.txt\np @ file:///opt/p\n-e ~/q\n../r-1.tar.gz\n-f /opt/wheels\n");
  write("more/all.txt", "../../s/\n");
  config.python.constraints = {"/opt/limits.txt", "https://example.org/limits.txt"};
  EXPECT_THAT(package_files(config, PackageSource::requirements).server_places,
              ElementsAre("../../s/", "../r-1.tar.gz", "/etc/limits.txt", "/opt/limits.txt", "/opt/p",
                          "/opt/wheels", "~/q/pyproject.toml", "~/q/setup.cfg", "~/q/setup.py"));
  const wire::ManagedPython python = managed_python(config, config.servers[0], false);
  EXPECT_THAT(python.packages_places, Contains("~/my pro'ject/../r-1.tar.gz"));
  EXPECT_THAT(python.packages_places, Contains("/opt/p"));
  EXPECT_EQ(packages_stamp(config, config.servers[0], package_sources(config)).places,
            python.packages_places);
}

TEST_F(Packages, OfALargeWheelTheServerComparesTheSize) {
  write("requirements.txt", "./wheels/p.whl\n");
  write("wheels/p.whl", std::string(5'000'000, 'x'));
  const wire::Packages request = packages_request(config);
  ASSERT_EQ(request.files.size(), 2);
  EXPECT_EQ(request.files[1].name, "wheels/p.whl");
  EXPECT_EQ(request.files[1].size, 5'000'000);
}

TEST_F(Packages, TheRequestHasFilesAndSettings) {
  config.python.index_url = "https://user:hush@mirror/simple";
  config.python.find_links = {"wheels"};
  write("requirements.txt", "-r more/all.txt\n./wheels/a b.whl\n-c /etc/limits.txt\n");
  write("more/all.txt", "numpy\n");
  write("wheels/a b.whl", "12345");
  write("Pipfile.lock", "{}");
  const wire::Packages request = packages_request(config);
  EXPECT_EQ(request.source, PackageSource::requirements);
  EXPECT_TRUE(request.has_lock);
  EXPECT_EQ(request.index_url, "https://user:hush@mirror/simple");
  EXPECT_EQ(request.find_links, std::vector<std::string>{"wheels"});
  std::map<std::string, std::string> files;
  for (const wire::PackageFile& file : request.files) {
    files[file.name] = file.sha256.empty() ? std::to_string(file.size) : file.sha256;
  }
  EXPECT_EQ(files, (std::map<std::string, std::string>{
                       {"requirements.txt", sha256_hex(read_file(folder.path() / "requirements.txt"))},
                       {"more/all.txt", sha256_hex("numpy\n")},
                       {"wheels/a b.whl", sha256_hex("12345")}}));
}

TEST_F(Packages, TheManagersAreThoseOfTheAgent) {
  for (const auto manager : {config::PythonManager::conda, config::PythonManager::venv,
                             config::PythonManager::uv, config::PythonManager::system}) {
    config.python.manager = manager;
    EXPECT_EQ(wire::name_of_value(managed_python(config, config.servers[0], false).manager),
              config::to_string(manager));
  }
}

TEST_F(Packages, EnvironmentsOfTheUserSeeThePackagesOfTheHomeDirectory) {
  const auto is_isolated = [this](config::PythonManager manager, const std::string& environment,
                                  const std::string& conda = "") {
    config.python.manager = manager;
    config.python.environment = environment;
    config.python.conda = conda;
    const wire::ManagedPython python = managed_python(config, config.servers[0], false);
    EXPECT_EQ(python_environment(config, config.servers[0])->is_isolated, python.is_isolated);
    return python.is_isolated;
  };
  EXPECT_TRUE(is_isolated(config::PythonManager::venv, ""));
  EXPECT_TRUE(is_isolated(config::PythonManager::uv, "env"));
  EXPECT_TRUE(is_isolated(config::PythonManager::conda, "", "/opt/conda"));
  EXPECT_FALSE(is_isolated(config::PythonManager::conda, "base", "/opt/conda"));
  EXPECT_FALSE(is_isolated(config::PythonManager::conda, "/data/env"));
  EXPECT_FALSE(is_isolated(config::PythonManager::venv, "~/env"));
  EXPECT_FALSE(is_isolated(config::PythonManager::system, ""));
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
