// setup, rsync and update-packages on real sshd processes, with the server's own python3, venv, pip and
// pipenv. Nothing uses the network: wheels are made here, and a script that behaves like Miniconda's
// installer is served over HTTP on loopback.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/shell_quote.hpp"
#include "support/prepare_world.hpp"

namespace remote::servers {
namespace {

TEST_F(PrepareTest, SystemGivesAPlainPythonAndTheProjectsModules) {
  use(config::PythonManager::system);
  write(here("src/inner.py"), "NAME = 'inner'\n");
  write(here("outer.py"), "NAME = 'outer'\n");
  const PrepareReport report = prepare_once();
  EXPECT_EQ(report.setup, StepResult::done);
  EXPECT_EQ(report.packages, StepResult::skipped);
  EXPECT_EQ(in_environment("python -c 'import inner, outer; print(inner.NAME, outer.NAME)'"), "inner outer");
  const PrepareReport again = prepare_once();
  EXPECT_EQ(again.setup, StepResult::skipped);
  EXPECT_THAT(again.files.changed, IsEmpty());
}

// Commands use `python`, which is Python 2 on some servers.
TEST_F(PrepareTest, SystemGivesAPythonThatIsNewEnoughAlsoWhereAnOldOneIsInThePath) {
  use(config::PythonManager::system);
  write(sandbox_.home(0) / "bin/python", "#!/bin/sh\n[ \"$1\" = -V ] || exit 1\necho Python 2.7.18 >&2\n");
  fs::permissions(sandbox_.home(0) / "bin/python", fs::perms::owner_all);
  const fs::path entry = here(".remote/sandbox/entry.sh");
  write(entry, "PATH=$HOME/bin:$PATH\nexport PATH\n" + read_file(entry));
  EXPECT_EQ(prepare_once().setup, StepResult::done);
  EXPECT_EQ(in_environment("python -c 'import sys; print(sys.version_info[0])'"), "3");
  // as if it was set up when python was recent enough
  fs::remove(there(".remote-scripts/bin/python"));
  EXPECT_EQ(prepare_once().setup, StepResult::done);
  EXPECT_EQ(in_environment("python -c 'import sys; print(sys.version_info[0])'"), "3");
}

// Like Debian's torch, which requires exact versions of packages although it works without them.
TEST_F(PrepareTest, WhatTheSystemsPackagesAskForIsNotFetched) {
  use(config::PythonManager::system);
  prepare_once();
  const fs::path site = in_environment("python -m site --user-site || true");
  const fs::path metadata = site / "tinywheel-1.0.dist-info/METADATA";
  write(metadata, "Metadata-Version: 2.1\nName: tinywheel\nVersion: 1.0\nRequires-Dist: found-nowhere==7\n");
  write(here("requirements.txt"), "# what we need\ntinywheel>=1  # that is all\n");
  EXPECT_EQ(prepare_once().packages, StepResult::done);
  write(here("requirements.txt"), "tinywheel>=2\n");
  EXPECT_THROW(prepare_once(), Error);
  // The project's own files are not packages.
  fs::rename(site / "tinywheel-1.0.dist-info", here("tinywheel-2.0.dist-info"));
  write(here("tinywheel-2.0.dist-info/METADATA"), "Metadata-Version: 2.1\nName: tinywheel\nVersion: 2.0\n");
  EXPECT_THROW(prepare_once(), Error);
}

TEST_F(PrepareTest, MakesTheProjectsFolderWhereverItIs) {
  use(config::PythonManager::system);
  steps_.setup = steps_.packages = false;
  write(here("a"), "1");
  const TempFolder elsewhere;
  for (const std::string& path :
       {std::string("~/deep er/than/this"), (elsewhere.path() / "x y/z").string()}) {
    config_.servers[0].remote_path = path;
    prepare_once();
    EXPECT_EQ(in_environment("cat " + remote_path_word(path) + "/a"), "1");
  }
}

TEST_F(PrepareTest, VenvWithPackagesAndASecondTimeNothing) {
  use(config::PythonManager::venv);
  make_wheel(here("my wheels"), "1.0");
  write(here("requirements.txt"), "-r more.txt\n");
  write(here("more.txt"), "tinywheel==1.0\n");
  const PrepareReport first = prepare_once();
  EXPECT_EQ(first.setup, StepResult::done);
  EXPECT_EQ(first.packages, StepResult::done);
  EXPECT_EQ(in_environment("python -c 'import tinywheel; print(tinywheel.VALUE)'"), "1.0");
  EXPECT_EQ(in_environment("python -c 'import sys; print(sys.prefix)'"), there(".venv").string());
  const PrepareReport second = prepare_once();
  EXPECT_EQ(second.setup, StepResult::skipped);
  EXPECT_EQ(second.packages, StepResult::skipped);
  EXPECT_THAT(second.files.changed, IsEmpty());

  // A file that requirements.txt names also counts.
  make_wheel(here("my wheels"), "2.0");
  write(here("more.txt"), "tinywheel==2.0\n");
  EXPECT_EQ(prepare_once().packages, StepResult::done);
  EXPECT_EQ(in_environment("python -c 'import tinywheel; print(tinywheel.VALUE)'"), "2.0");
  EXPECT_EQ(prepare_once().packages, StepResult::skipped);
  steps_.setup = steps_.sync = false;
  steps_.force = true;
  EXPECT_EQ(prepare_once().packages, StepResult::done);
}

TEST_F(PrepareTest, APackageInTheHomeDirectoryDoesNotReplaceOneOfTheEnvironment) {
  use(config::PythonManager::venv);
  config_.python.system_site_packages = true;
  const fs::path own =
      sandbox_.home(0) / ".local/lib" / ("python" + local_python_version()) / "site-packages";
  write(own / "tinywheel.py", "VALUE = '1.0'\n");
  write(own / "tinywheel-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tinywheel\nVersion: 1.0\n");
  make_wheel(here("my wheels"), "2.0");
  write(here("requirements.txt"), "tinywheel>=1\n");
  EXPECT_EQ(prepare_once().packages, StepResult::done);
  EXPECT_EQ(in_environment("python -c 'import tinywheel; print(tinywheel.VALUE)'"), "2.0");
}

TEST_F(PrepareTest, PipsErrorIsShownAndTheNextTimeItIsTriedAgain) {
  use(config::PythonManager::venv);
  make_wheel(here("my wheels"), "1.0");
  write(here("requirements.txt"), "no-such-package-anywhere\n");
  for (int i = 0; i < 2; ++i) {
    try {
      prepare_once();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "update-packages: pip could not install the packages");
    }
    EXPECT_THAT(recorder_.stderr_lines, HasSubstr("no-such-package-anywhere"));
    EXPECT_THAT(read_file(fs::path(recorder_.log_folder) / "stderr.log"),
                HasSubstr("No matching distribution found for no-such-package-anywhere"));
    EXPECT_EQ(read_file(fs::path(recorder_.log_folder) / "exit_code"), "1\n");
  }
}

TEST_F(PrepareTest, WhatIsOnRecordIsWhatWasInstalled) {
  use(config::PythonManager::venv);
  make_wheel(here("my wheels"), "1.0");
  write(here("requirements.txt"), "tinywheel\n");
  prepare_well();
  // The next requirements, and a newer wheel, are not sent yet.
  make_wheel(here("my wheels"), "2.0");
  steps_.sync = false;
  const auto install = [&] {
    const PrepareReport report = prepare_well();
    EXPECT_EQ(report.packages, StepResult::done);
    return join(report.notes, "\n");
  };
  EXPECT_THAT(install(),
              HasSubstr("its my wheels/tinywheel-2.0-py3-none-any.whl differs from the local copy"));
  write(here("requirements.txt"), "tinywheel>1\n");
  EXPECT_THAT(install(), HasSubstr("differs from the local copy"));
  // It is not recorded as done, neither before nor after the project was sent.
  EXPECT_THAT(install(), HasSubstr("differs from the local copy"));
  steps_.sync = true;
  EXPECT_EQ(install(), "");
  EXPECT_EQ(in_environment("python -c 'import tinywheel; print(tinywheel.VALUE)'"), "2.0");
  EXPECT_EQ(prepare_well().packages, StepResult::skipped);
}

TEST_F(PrepareTest, WhatAnInterruptedTransferLeftGoesWithTheNextOne) {
  struct Interrupting : Recorder {
    explicit Interrupting(Cancel& to_cancel) : cancel(to_cancel) {}
    void transfer(const TransferProgress& progress) override {
      if (progress.bytes > 0) {
        cancel.cancel();
      }
    }
    Cancel& cancel;
  };
  use(config::PythonManager::system);
  steps_.setup = steps_.packages = false;
  write(there("deep/.rsync-partial/mine"), "a job's own, as nothing was interrupted");
  prepare_well();
  EXPECT_TRUE(fs::exists(there("deep/.rsync-partial/mine")));
  write(here("deep/big"), std::string(50'000'000, 'x'));
  steps_.sync_options.bytes_per_second = 5000 * 1024;
  Cancel cancel;
  Interrupting listener(cancel);
  EXPECT_THROW(prepare(*connection_, config_, server(), steps_, listener, cancel), Interrupted);
  fs::remove(here("deep/big"));  // makes the server's partial copy useless
  connection_ = connect();
  prepare_well();
  EXPECT_FALSE(fs::exists(there("deep/.rsync-partial")));
  write(there("deep/.rsync-partial/mine"), "again a job's");
  prepare_well();
  EXPECT_TRUE(fs::exists(there("deep/.rsync-partial/mine")));
}

TEST_F(PrepareTest, AnEnvironmentMadeOtherwiseIsMadeAnewWithItsPackages) {
  use(config::PythonManager::venv);
  make_wheel(here("my wheels"), "1.0");
  write(here("requirements.txt"), "tinywheel\n");
  prepare_once();
  config_.python.system_site_packages = true;
  const PrepareReport report = prepare_once();
  EXPECT_EQ(report.setup, StepResult::done);
  EXPECT_EQ(report.packages, StepResult::done);
  EXPECT_THAT(read_file(there(".venv/pyvenv.cfg")), HasSubstr("include-system-site-packages = true"));
}

TEST_F(PrepareTest, AHalfFinishedVenvIsMadeAnewAndAForeignOneIsKept) {
  use(config::PythonManager::venv);
  fs::create_directories(there(".venv/bin"));
  try {
    prepare_once();  // not ours and not usable: never removed
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.reason(), HasSubstr("is not a virtual environment"));
  }
  EXPECT_TRUE(fs::exists(there(".venv/bin")));
  write(there(".remote-scripts/setup.unfinished"), there(".venv").string() + "\n");  // ours, interrupted
  EXPECT_EQ(prepare_once().setup, StepResult::done);
  EXPECT_TRUE(fs::exists(there(".venv/bin/python")));
  EXPECT_FALSE(fs::exists(there(".remote-scripts/setup.unfinished")));

  // An environment made by someone else is adopted, and is kept even with --force.
  fs::remove(there(".venv/.remote-setup"));
  write(there(".venv/theirs"), "");
  EXPECT_THAT(prepare_once().notes, Contains(HasSubstr("took over")));
  EXPECT_EQ(prepare_once().setup, StepResult::skipped);
  steps_.force = true;
  prepare_once();
  EXPECT_TRUE(fs::exists(there(".venv/theirs")));
}

TEST_F(PrepareTest, TheSystemsPythonIsNotTouchedWhereTheDistributionOwnsIt) {
  use(config::PythonManager::system);
  write(here("requirements.txt"), "pip\n");
  fs::create_directories(here("my wheels"));
  ASSERT_TRUE(fs::exists("/usr/lib/python3.11/EXTERNALLY-MANAGED") ||
              fs::exists("/usr/lib/python3.12/EXTERNALLY-MANAGED") ||
              fs::exists("/usr/lib/python3.13/EXTERNALLY-MANAGED"))
      << "this test is for a distribution that marks its Python";
  EXPECT_EQ(prepare_once().packages, StepResult::done);  // everything is there
  EXPECT_EQ(prepare_once().packages, StepResult::skipped);
  make_wheel(here("my wheels"), "1.0");
  write(here("requirements.txt"), "pip\ntinywheel\n");
  const Error error = failure();
  EXPECT_THAT(error.reason(), HasSubstr("PEP 668"));
  EXPECT_THAT(error.hint(), HasSubstr("system_site_packages: true"));
  EXPECT_THAT(in_environment("python -c 'import tinywheel'"), HasSubstr("No module named"));
}

TEST_F(PrepareTest, APythonThatIsNotThereIsAClearError) {
  use(config::PythonManager::venv);
  config_.python.version = "3.2";
  const Error error = failure();
  EXPECT_THAT(error.reason(), HasSubstr("there is no Python 3.2 on the PATH of this server"));
  EXPECT_THAT(error.hint(), HasSubstr("conda"));
}

TEST_F(PrepareTest, APyprojectThatOnlyConfiguresToolsInstallsNothing) {
  use(config::PythonManager::venv);
  write(here("pyproject.toml"), "[tool.black]\nline-length = 99\n");
  EXPECT_EQ(prepare_once().package_source, PackageSource::none);
  // Any user who can read a lock can hold it.
  EXPECT_EQ(fs::status(there(".remote-scripts/setup.lock")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(PrepareTest, PipenvWhereThereIsAPipfile) {
  if (!find_program("/usr/bin/pipenv")) {
    GTEST_SKIP() << "pipenv is not installed";
  }
  use(config::PythonManager::system);
  // Newer versions also ask an index about a package whose file is named.
  const WebFolder www;
  config_.python.no_index = false;
  config_.python.find_links.clear();
  make_wheel(www.folder() / "simple/tinywheel", "1.0");
  write(here("Pipfile"),
        fmt::format("[[source]]\nname = \"here\"\nurl = \"{}/simple\"\nverify_ssl = false\n\n"
                    "[packages]\ntinywheel = \"*\"\n",
                    www.url()));
  const PrepareReport report = prepare_well();
  EXPECT_EQ(report.package_source, PackageSource::pipenv);
  EXPECT_EQ(report.packages, StepResult::done);
  EXPECT_EQ(in_environment("python -c 'import tinywheel; print(tinywheel.VALUE)'"), "1.0");
  EXPECT_THAT(in_environment("python -c 'import sys; print(sys.prefix)'"), HasSubstr("virtualenvs"));
  EXPECT_EQ(prepare_once().packages, StepResult::skipped);
}

TEST_F(CondaTest, InstalledOnceWithTheLaptopsVersion) {
  make_wheel(here("my wheels"), "1.0");
  write(here("requirements.txt"), "tinywheel\n");
  config_.python.miniconda_sha256 = {{"x86_64", sha256_hex(installer)}, {"aarch64", sha256_hex(installer)}};
  EXPECT_EQ(prepare_once().setup, StepResult::done);
  EXPECT_EQ(read_file(conda() / "created"), "python=3.11\npip\n");
  EXPECT_EQ(in_environment("python -c 'import sys, tinywheel; print(sys.prefix, tinywheel.VALUE)'"),
            environment().string() + " 1.0");
  EXPECT_EQ(in_environment("echo $FROM_HOOK $CONDA_DEFAULT_ENV"), environment().string() + " my_project_env");
  const PrepareReport again = prepare_once();
  EXPECT_EQ(again.setup, StepResult::skipped);
  EXPECT_EQ(again.packages, StepResult::skipped);
  for (const auto& entry : fs::directory_iterator(sandbox_.home(0))) {
    EXPECT_THAT(entry.path().string(), Not(AnyOf(HasSubstr("installer"), HasSubstr(".lock"))))
        << "left behind";
  }
  steps_.default_python = "3.12";  // another laptop: no reason to recreate it
  EXPECT_EQ(prepare_once().setup, StepResult::skipped);
}

TEST_F(CondaTest, AnEnvironmentElsewhereIsUsedAsItIs) {
  const fs::path theirs = sandbox_.home(0) / "anaconda3/envs/torch";
  SubprocessSpec spec;
  spec.argv = {python, "-m", "venv", theirs.string()};
  ASSERT_TRUE(run_subprocess(spec).status.success());
  config_.python.environment = theirs.string();
  steps_.default_python = "3.2";  // this machine's version does not matter there
  steps_.force = true;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(prepare_well().notes, Contains(HasSubstr("took over")));
    EXPECT_EQ(in_environment("python -c 'import sys; print(sys.prefix)'"), theirs.string());
    EXPECT_EQ(in_environment("echo \"$CONDA_PREFIX ${CONDA_EXE-none}\""), theirs.string() + " none");
  }
  EXPECT_FALSE(fs::exists(conda()));
  EXPECT_FALSE(fs::exists(theirs.string() + ".lock"));
  EXPECT_FALSE(fs::exists(theirs.parent_path().parent_path().string() + ".lock"));
  EXPECT_THAT(www_.log(), Not(HasSubstr("GET")));
  steps_.force = false;
  EXPECT_EQ(prepare_well().setup, StepResult::skipped);
}

TEST_F(CondaTest, AChecksumForAnotherArchitectureInstallsNothing) {
#ifdef __x86_64__
  config_.python.miniconda_sha256 = {{"aarch64", sha256_hex(installer)}};
#else
  config_.python.miniconda_sha256 = {{"x86_64", sha256_hex(installer)}};
#endif
  EXPECT_THAT(failure().reason(), HasSubstr("has no digest for this server's architecture"));
  EXPECT_FALSE(fs::exists(conda()));
}

TEST_F(CondaTest, AWrongChecksumInstallsNothing) {
  config_.python.miniconda_sha256 = {{"x86_64", std::string(64, '0')}, {"aarch64", std::string(64, '0')}};
  const Error error = failure();
  EXPECT_THAT(error.reason(), HasSubstr(sha256_hex(installer)));
  EXPECT_THAT(error.hint(), HasSubstr("miniconda_sha256"));
  EXPECT_FALSE(fs::exists(conda()));
}

TEST_F(CondaTest, AnInstallationThatWasCutShortIsMadeAnew) {
  write(sandbox_.home(0) / "fail-half-way", "");
  EXPECT_THROW(prepare_once(), Error);
  ASSERT_TRUE(fs::exists(conda() / "bin"));
  ASSERT_FALSE(fs::exists(conda() / "bin/conda"));
  fs::remove(sandbox_.home(0) / "fail-half-way");
  EXPECT_EQ(prepare_once().setup, StepResult::done);
  EXPECT_EQ(in_environment("python -c 'print(1)'"), "1");
}

TEST_F(CondaTest, ABrokenCondaOfSomebodyElseIsMovedAside) {
  write(conda() / "precious", "theirs");
  const PrepareReport report = prepare_once();
  EXPECT_THAT(report.notes, Contains(HasSubstr("miniconda.broken")));
  bool kept = false;
  for (const auto& entry : fs::directory_iterator(sandbox_.home(0))) {
    kept = kept || fs::exists(entry.path() / "precious");
  }
  EXPECT_TRUE(kept);
}

TEST_F(CondaTest, AnUnreachableMirrorIsNamed) {
  config_.python.miniconda_url = "http://127.0.0.1:9/none.sh";
  const Error error = failure();
  EXPECT_EQ(error.reason(), "cannot download http://127.0.0.1:9/none.sh");
  EXPECT_THAT(error.hint(), ::testing::AllOf(HasSubstr("miniconda_url"), HasSubstr("{manager: venv}"),
                                             HasSubstr("{manager: system}")));
  EXPECT_FALSE(fs::exists(conda()));
  EXPECT_FALSE(fs::exists(conda().string() + ".unfinished"));
  EXPECT_FALSE(fs::exists(conda().string() + ".lock"));
}

// A project package that pip copies: every file that is sent counts, and no file that a build leaves behind.
TEST(LocalPackages, CodeOfAPackageThatIsCopiedCounts) {
  const TempFolder folder("remote-local-package-");
  config::Config config;
  config.project = folder.path();
  config.name = "p";
  const auto write = [&](const std::string& name, const std::string& text) {
    make_folders((folder.path() / name).parent_path());
    write_file_atomic(folder.path() / name, text);
  };
  write(".remote/exclude.txt", "*.log\n");
  write("requirements.txt", "./libs/p[fast]\nq @ file:libs/q\n-e ./libs/r\n-e ./libs/s\n-e ./libs/t\n");
  write("libs/p/setup.py", "1\n");
  write("libs/q/setup.py", "1\n");
  write("libs/other/setup.py", "1\n");
  write("libs/r/setup.py", "open('reqs/' + kind + '.txt')\n");          // an unknown name
  write("libs/s/setup.py", "open(os.path.join(folder, 'base.in'))\n");  // in an unknown folder
  write("libs/t/setup.py", "setup(package_data={'t': ['*.txt']})\n");   // data files
  std::string before = package_sources(config).digest;
  for (const char* name : {"libs/p/p/__init__.py", "libs/p/p/data.bin", "libs/q/q.py", "libs/q/setup.py",
                           "libs/r/reqs/base.txt", "libs/s/reqs/base.in"}) {
    write(name, "2\n");
    EXPECT_NE(package_sources(config).digest, before) << name;
    before = package_sources(config).digest;
  }
  for (const char* name : {"train.py", "libs/other/setup.py", "libs/p/p/__pycache__/x.pyc", "libs/p/run.log",
                           "libs/p/p.egg-info/PKG-INFO", "libs/p/build/lib/p.py", "libs/r/r.py",
                           "libs/r/r.egg-info/requires.txt", "libs/s/reqs/other.in", "libs/t/labels/1.txt"}) {
    write(name, "3\n");
    EXPECT_EQ(package_sources(config).digest, before) << name;
  }
  fs::remove(folder.path() / "libs/p/p/data.bin");
  EXPECT_NE(package_sources(config).digest, before);
}

}  // namespace
}  // namespace remote::servers
