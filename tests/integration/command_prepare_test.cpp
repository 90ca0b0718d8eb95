// `remote prepare` and its steps: `setup`, `rsync` and `update-packages`.

#include "base/files.hpp"
#include "support/command_world.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

class CommandPrepare : public ::testing::Test {
 protected:
  CommandPrepare() {
    write_file_atomic(world.project() / "train.py", "print(1)\n");
    make_folders(world.project() / "sub");
    write_file_atomic(world.project() / "sub/more.py", "print(2)\n");
  }
  std::string on(const std::string& server, const std::string& name) {
    return read_file_if_there(world.there(server) / name).value_or("(none)");
  }
  // From now on python3 makes environments whose pip prints this and fails. If the file ~/venv-fails exists,
  // it prints that and fails to make one.
  void fail_in_pip(const std::string& lines) {
    world.configure(
        "name: proj\npython: {manager: venv}\nservers:\n  a: {hostname: a}\n  b: {hostname: b}\n");
    write_file_atomic(world.project() / "requirements.txt", "torhc\n");
    write_file_atomic(world.servers().bin() / "pip-prints", lines);
    world.servers().add_program("python3", R"(case "$*" in
  *"-m venv"*)
    if [ -e ~/venv-fails ]; then
      cat ~/venv-fails >&2
      exit 1
    fi
    for folder; do :; done
    mkdir -p "$folder/bin" && ln -s "$0" "$folder/bin/python"
    ;;
  *"pip install"*)
    cat ')" + (world.servers().bin() / "pip-prints").string() +
                                               R"('
    cat ')" + (world.servers().bin() / "pip-prints").string() +
                                               R"(' >&2
    exit 1
    ;;
  *importlib.metadata*) exit 1 ;;
esac
)");
  }
  CommandWorld world;
};

TEST_F(CommandPrepare, RsyncSendsTheProjectToEveryServer) {
  const CommandResult result = world.run({"rsync"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_EQ(result.out, "");
  for (const char* server : {"a", "b"}) {
    EXPECT_EQ(on(server, "train.py"), "print(1)\n");
    EXPECT_EQ(on(server, "sub/more.py"), "print(2)\n");
    EXPECT_EQ(on(server, ".remote/configs.yaml"), "(none)");  // it may contain a password
    EXPECT_THAT(result.err, HasSubstr(std::string(server) + ": ok rsync 2 files"));
  }
  EXPECT_THAT(result.err, ::testing::EndsWith("2 servers synced\n"));
  EXPECT_THAT(world.run({"rsync"}).err, HasSubstr("a: ok rsync nothing new"));
  EXPECT_THAT(world.run({"--quiet", "rsync"}), Ends(0, "", ""));
}

TEST_F(CommandPrepare, RsyncGoesToTheServersThatAreNamed) {
  EXPECT_EQ(world.run({"rsync", "--server", "b"}).code, 0);
  EXPECT_EQ(on("a", "train.py"), "(none)");
  EXPECT_EQ(on("b", "train.py"), "print(1)\n");
}

TEST_F(CommandPrepare, ADryRunShowsWhatWouldGoAndSendsNothing) {
  const CommandResult result = world.run({"rsync", "--dry-run", "--server", "a"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, AllOf(HasSubstr("rsync 2 files (dry run)"), HasSubstr("a: would send:\n"),
                                HasSubstr("    train.py\n"), HasSubstr("    sub/more.py\n")));
  EXPECT_EQ(on("a", "train.py"), "(none)");
  EXPECT_THAT(world.run({"rsync", "-n"}).err, HasSubstr("2 servers compared, nothing was sent\n"));
}

TEST_F(CommandPrepare, WhatIsNewerThereStaysUnlessOverwriteIsGiven) {
  ASSERT_EQ(world.run({"rsync"}).code, 0);
  write_file_atomic(world.there("a") / "train.py", "changed there\n");
  fs::last_write_time(world.there("a") / "train.py",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  const CommandResult kept = world.run({"rsync"});
  EXPECT_EQ(kept.code, 0);
  EXPECT_THAT(kept.err, AllOf(HasSubstr("a: not changed, newer on the server:\n    train.py\n"),
                              HasSubstr("hint: send them too with --overwrite\n"),
                              HasSubstr("2 servers synced except for files that are newer there\n")));
  EXPECT_EQ(on("a", "train.py"), "changed there\n");
  EXPECT_EQ(world.run({"rsync", "--overwrite"}).code, 0);
  EXPECT_EQ(on("a", "train.py"), "print(1)\n");
}

TEST_F(CommandPrepare, DeleteRemovesWhatWasSentAndIsGoneHere) {
  ASSERT_EQ(world.run({"rsync"}).code, 0);
  write_file_atomic(world.there("a") / "result", "of a job\n");
  fs::remove(world.project() / "train.py");
  EXPECT_THAT(world.run({"rsync"}).err, Not(HasSubstr("removed")));
  EXPECT_EQ(on("a", "train.py"), "print(1)\n");
  const CommandResult planned = world.run({"rsync", "--delete", "-n", "--server", "a"});
  EXPECT_THAT(planned.err, HasSubstr("a: would remove:\n    train.py\n"));
  EXPECT_EQ(on("a", "train.py"), "print(1)\n");
  const CommandResult result = world.run({"rsync", "--delete"});
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("rsync nothing new, 1 removed"), HasSubstr("a: removed:\n    train.py\n")));
  EXPECT_EQ(on("a", "train.py"), "(none)");
  EXPECT_EQ(on("a", "result"), "of a job\n");
}

TEST_F(CommandPrepare, WhatIsExcludedIsNotSent) {
  write_file_atomic(world.project() / ".remote/exclude.txt", "sub/\n");
  EXPECT_EQ(world.run({"rsync", "--server", "a"}).code, 0);
  EXPECT_EQ(on("a", "train.py"), "print(1)\n");
  EXPECT_EQ(on("a", "sub/more.py"), "(none)");
}

TEST_F(CommandPrepare, VerifyComparesContentsAndFailsWhereTheyDiffer) {
  EXPECT_EQ(world.run({"rsync", "--verify"}).code, 0);
  write_file_atomic(world.there("b") / "train.py", "print(3)\n");
  fs::last_write_time(world.there("b") / "train.py",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  const CommandResult result = world.run({"rsync", "--verify"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("b: differs from here:\n    train.py\n"), HasSubstr(", 1 failed\n")));
}

TEST_F(CommandPrepare, JsonHasEachServersFiles) {
  const CommandResult result = world.run({"rsync", "--json"});
  EXPECT_EQ(result.code, 0);
  const auto all = result.json();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["server"], "a");
  EXPECT_EQ(all[0]["ok"], true);
  EXPECT_EQ(all[0]["rsync"]["changed"], nlohmann::json({"train.py", "sub/more.py"}));
  EXPECT_EQ(all[0]["rsync"]["from"], nullptr);
  EXPECT_EQ(all[0]["rsync"]["removed"], nlohmann::json::array());
  EXPECT_FALSE(all[0].contains("setup"));
}

TEST_F(CommandPrepare, AServerThatIsNotReachedFailsAlone) {
  world.cut_off({"b"});
  const CommandResult result = world.run({"rsync", "--json"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(on("a", "train.py"), "print(1)\n");
  EXPECT_EQ(result.json()[0]["ok"], true);
  EXPECT_EQ(result.json()[1]["ok"], false);
  EXPECT_THAT(result.json()[1]["error"].get<std::string>(), HasSubstr("injected fault"));
  EXPECT_EQ(result.json()[1]["cause"], "unreachable");
  EXPECT_THAT(result.err, AllOf(HasSubstr("b: failed "), ::testing::EndsWith("1 server synced, 1 failed\n")));
}

TEST_F(CommandPrepare, PrepareDoesAllStepsOnceAndAgainWithForce) {
  const CommandResult first = world.run({"prepare"});
  EXPECT_EQ(first.code, 0) << first;
  EXPECT_THAT(first.err,
              AllOf(HasSubstr("a: ok setup done, rsync 2 files"), HasSubstr("2 servers prepared\n")));
  const CommandResult second = world.run({"prepare", "--json"});
  EXPECT_EQ(second.code, 0);
  EXPECT_EQ(second.json()[1]["setup"], "already");
  EXPECT_EQ(second.json()[1]["rsync"]["changed"], nlohmann::json::array());
  EXPECT_EQ(world.run({"prepare", "--force", "--json"}).json()[1]["setup"], "done");
}

TEST_F(CommandPrepare, SetupAndUpdatePackagesAreSteps) {
  const CommandResult setup = world.run({"setup"});
  EXPECT_EQ(setup.code, 0) << setup;
  EXPECT_THAT(setup.err,
              AllOf(HasSubstr("a: ok setup done"), Not(HasSubstr("rsync")), HasSubstr("2 servers set up\n")));
  EXPECT_EQ(on("a", "train.py"), "(none)");
  EXPECT_THAT(world.run({"setup", "--server", "a"}).err, HasSubstr("a: ok setup already"));
  const CommandResult packages = world.run({"update-packages", "--json"});
  EXPECT_EQ(packages.code, 0) << packages;
  EXPECT_FALSE(packages.json()[0].contains("rsync"));
  EXPECT_TRUE(packages.json()[0]["ok"]);
}

TEST_F(CommandPrepare, AStepThatFailsShowsTheEndOfItsOutputAndTheLog) {
  write_file_atomic(world.there("b") / ".remote-scripts", "no folder");
  const CommandResult result = world.run({"setup", "--json"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_THAT(result.err, AllOf(HasSubstr("a: ok"), HasSubstr("b: failed"), HasSubstr("full log: "),
                                HasSubstr("1 server set up, 1 failed\n")));
  EXPECT_TRUE(fs::exists(result.json()[1]["log"].get<std::string>()));
}

TEST_F(CommandPrepare, AnInterruptIs130) {
  world.servers().add_program("rsync", "touch ~/began\nexec sleep 1000\n");
  const auto running = world.start({"rsync", "--server", "a", "--json"});
  until([&] { return fs::exists(world.servers().home("a") / "began"); }, "the transfer's beginning");
  running->interrupt();
  const CommandResult result = running->wait();
  EXPECT_EQ(result.code, 130) << result;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err,
              ::testing::EndsWith("interrupted: files that have arrived stay on the servers; the same "
                                  "command again sends the rest\n"));
}

TEST_F(CommandPrepare, AnInterruptOfPrepareNamesTheInstallers) {
  write_file_atomic(world.servers().bin() / "hang", "");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"prepare", "--force"}, {"setup", "--force"}}) {
    const int before = world.servers().commands();
    const auto running = world.start(words);
    until([&] { return world.servers().commands() > before; }, "a question to a server");
    running->interrupt();
    const CommandResult result = running->wait();
    EXPECT_EQ(result.code, 130) << result;
    EXPECT_THAT(result.err,
                ::testing::EndsWith("interrupted: installers that run on the servers are ended; the same "
                                    "command again continues\n"));
  }
}

TEST_F(CommandPrepare, EachStepHasItsOwnOptions) {
  EXPECT_THAT(world.run({"rsync", "--force"}), Refused("remote rsync has no option --force"));
  EXPECT_THAT(world.run({"setup", "--delete"}), Refused("remote setup has no option --delete"));
  EXPECT_THAT(world.run({"setup", "--dry-run"}), Refused("remote setup has no option --dry-run"));
  EXPECT_THAT(world.run({"prepare", "-n"}), Refused("remote prepare has no option -n"));
  EXPECT_THAT(world.run({"update-packages", "--bwlimit", "1"}), Refused("has no option --bwlimit"));
  EXPECT_THAT(world.run({"rsync", "--bwlimit", "-1"}), Refused("--bwlimit"));
  EXPECT_THAT(world.run({"rsync", "--fan-out", "tree"}), Refused("--fan-out"));
  EXPECT_EQ(world.servers().commands(), 0);
  EXPECT_EQ(on("a", "train.py"), "(none)");
}

// A failure shared by several servers is shown once, with a hint.
TEST_F(CommandPrepare, PipsFailureIsShownOnceForTheServersThatShareIt) {
  fail_in_pip("ERROR: No matching distribution found for torhc\n");
  const CommandResult result = world.run({"prepare"});
  EXPECT_EQ(result.code, 1) << result;
  const std::string message = "| ERROR: No matching distribution";
  EXPECT_NE(result.err.find(message), std::string::npos) << result;
  EXPECT_EQ(result.err.find(message), result.err.rfind(message)) << result;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr(", as on "), HasSubstr(" hint: a and b: is 'torhc' the right name")));
}

// The hint for pip's own reason comes first, then the hint about the disk, then the agent's guess.
TEST_F(CommandPrepare, TheHintIsThatOfTheMostCertainReason) {
  const std::string full = "OSError: [Errno 28] No space left on device\n";
  const std::string quota = "ERROR: Could not install packages: [Errno 122] Disk quota exceeded\n";
  const std::string links = "ERROR: Could not install: [Errno 1] Operation not permitted: 'lib' -> 'lib64'\n";
  const auto prepare = [this](const std::string& lines) {
    fail_in_pip(lines);
    const CommandResult result = world.run({"prepare", "--server", "a"});
    EXPECT_EQ(result.code, 1) << result;
    return result.err;
  };
  write_file_atomic(world.servers().home("a") / "venv-fails", "ensurepip is not available\n");
  EXPECT_THAT(prepare(""), HasSubstr("python3-venv"));
  write_file_atomic(world.servers().home("a") / "venv-fails", full);
  EXPECT_THAT(prepare(""), AllOf(HasSubstr("free some space on the server's disk"), Not(HasSubstr("apt-get")),
                                 Not(HasSubstr("python3-venv"))));
  fs::remove(world.servers().home("a") / "venv-fails");
  EXPECT_THAT(prepare(quota), HasSubstr("`quota -s`"));
  EXPECT_THAT(prepare(links), HasSubstr("choose another remote_path"));
  EXPECT_THAT(prepare(full), AllOf(HasSubstr("free some space in "), HasSubstr(" MB left)")))
      << "the disks are known";
  EXPECT_THAT(prepare("ERROR: No matching distribution found for torhc\n" + quota),
              AllOf(HasSubstr("is 'torhc' the right name"), Not(HasSubstr("`quota -s`"))));
}

TEST_F(CommandPrepare, APasswordThatPipPrintsIsNowhere) {
  fail_in_pip(
      "Looking in indexes: https://bob:s3cretTOKEN@index.invalid/simple\n"
      "ERROR: Could not fetch git+http://s3cretTOKEN@index.invalid/demo.git\n");
  const CommandResult result = world.run({"-v", "prepare", "--show-output"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out + result.err, AllOf(HasSubstr("index.invalid"), Not(HasSubstr("s3cretTOKEN"))));
  bool is_logged = false;
  for (const auto& entry : fs::recursive_directory_iterator(world.project() / ".remote")) {
    if (entry.is_regular_file()) {
      const std::string text = read_file(entry.path());
      is_logged = is_logged || text.find("index.invalid") != std::string::npos;
      EXPECT_THAT(text, Not(HasSubstr("s3cretTOKEN"))) << entry.path();
    }
  }
  EXPECT_TRUE(is_logged);
}

TEST_F(CommandPrepare, ItIsSaidWhenThereIsNothingToInstall) {
  EXPECT_THAT(world.run({"prepare"}).err, HasSubstr("nothing to install: no requirements.txt"));
  write_file_atomic(world.project() / "environment.yml", "dependencies: [numpy]\n");
  EXPECT_THAT(world.run({"prepare"}).err, HasSubstr("hint: environment.yml is not read"));
  EXPECT_THAT(world.run({"rsync"}).err, Not(HasSubstr("nothing to install")));
  write_file_atomic(world.project() / "requirements.txt", "\n");
  EXPECT_THAT(world.run({"update-packages"}).err, Not(HasSubstr("nothing to install")));
}

TEST_F(CommandPrepare, ResultsThatWereCopiedHereAreNoMatterOfTheExcludeFile) {
  make_folders(world.project() / "results");
  write_file_atomic(world.project() / "results/one", "x");
  write_file_atomic(world.project() / ".remote/exclude.txt", "results\n");
  EXPECT_THAT(world.run({"rsync", "-n", "--server", "a"}).err, HasSubstr("exclude.txt: results/"));
  world.configure("name: proj\noutputs: [out.csv]\nservers:\n  a: {hostname: a}\n");
  EXPECT_THAT(world.run({"rsync", "-n", "--server", "a"}).err, Not(HasSubstr("results/")));
}

TEST_F(CommandPrepare, ALargeFirstSyncIsAskedAbout) {
  make_folders(world.project() / "films");
  write_file_atomic(world.project() / "films/one", "");
  fs::resize_file(world.project() / "films/one", 1'200'000'000);  // uses no disk blocks
  const CommandResult refused = world.run({"rsync"}, screen("n\n"));
  EXPECT_EQ(refused.code, 1) << refused;
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("1.2 GB in 3 files new for a and b"), HasSubstr("1.2 GB  films/, 1 file"),
                    HasSubstr("exclude.txt"), HasSubstr("nothing was sent: not confirmed")));
  EXPECT_EQ(on("a", "train.py"), "(none)");
  // It continues without a terminal, and with --yes; here until rsync fails.
  world.servers().add_program("rsync", "echo 'no luck' >&2\nexit 1\n");
  const auto goes_on = AllOf(HasSubstr("new for a and b"), HasSubstr("no luck"));
  EXPECT_THAT(world.run({"rsync"}).err, goes_on);
  EXPECT_THAT(world.run({"rsync", "--yes"}, screen("")).err, goes_on);
  // If excluded, it is not asked about, but listed.
  fs::remove(world.servers().bin() / "rsync");
  write_file_atomic(world.project() / ".remote/exclude.txt", "films\n");
  EXPECT_THAT(world.run({"rsync", "--server", "a"}).err,
              AllOf(Not(HasSubstr("new for")), HasSubstr("skipped by exclude.txt: films/ (1.2 GB)")));
  EXPECT_THAT(world.run({"rsync", "-n", "--server", "a"}).err,
              HasSubstr("skipped by exclude.txt: films/ (1.2 GB)"));
  fs::remove(world.project() / ".remote/exclude.txt");
  EXPECT_THAT(world.run({"rsync", "--server", "a", "--dry-run"}).err, Not(HasSubstr("new for")));
  // Not only the first sync asks: it also asks about files added later that a server lacks.
  EXPECT_THAT(world.run({"rsync", "--server", "a"}, screen("n\n")).err,
              AllOf(HasSubstr("1.2 GB in 1 file new for a:"), HasSubstr("not confirmed")));
}

TEST_F(CommandPrepare, WhatIsExcludedIsNamedWhenItIsMissingThere) {
  make_folders(world.project() / "data");
  make_folders(world.project() / "datasets");
  write_file_atomic(world.project() / "data/flowers.csv", "1\n");
  write_file_atomic(world.project() / "datasets/__init__.py", "");
  write_file_atomic(world.project() / ".remote/exclude.txt", "/data/\n/datasets/\n");
  const auto launch = [&](const std::string& code) {
    return world.run({"torch-launch", "--rsync", "--follow", "--server", "a", "--", "python3", "-c", code})
        .err;
  };
  EXPECT_THAT(launch("open('data/flowers.csv')"), HasSubstr("data/flowers.csv exists here but is excluded"));
  EXPECT_THAT(launch("import datasets"), HasSubstr("datasets/ exists here but is excluded"));
  EXPECT_THAT(launch("import notthere"), HasSubstr("has no module notthere"));
}

TEST_F(CommandPrepare, OnATerminalFinishedServersStayAndNothingElse) {
  const CommandResult result = world.run({"rsync", "--color", "never"}, screen());
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, AllOf(HasSubstr("a: ok rsync 2 files"), HasSubstr("b: ok rsync 2 files"),
                                ::testing::EndsWith("2 servers synced\n")));
}

// As on a new machine, which installs its own updates first.
TEST_F(CommandPrepare, WhoHoldsTheLockOfDpkgIsNamedOnce) {
  world.configure(
      "name: proj\npython: {manager: system}\nsystem_packages: [liba]\nservers:\n  a: {hostname: a}\n");
  world.servers().add_program("sudo", "shift\nexec \"$@\"\n");
  world.servers().add_program(
      "apt-get",
      "for second in 1 2 3; do\n"
      "  echo 'Waiting for cache lock: Could not get lock /var/lib/dpkg/lock-frontend. "
      "It is held by process 1729 (python3)...'\ndone\nexit 1\n");
  const CommandResult result = world.run({"setup"});
  EXPECT_EQ(result.code, 1) << result;
  const std::string line = "a: waiting for process 1729 (python3), which installs packages\n";
  const std::size_t at = result.err.find(line);
  ASSERT_NE(at, std::string::npos) << result;
  EXPECT_EQ(result.err.find(line, at + 1), std::string::npos) << result;
}

}  // namespace
}  // namespace remote::test
