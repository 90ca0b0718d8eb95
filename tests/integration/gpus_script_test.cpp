#include <fstream>

#include <gmock/gmock.h>
#include <unistd.h>

#include "servers/facts.hpp"
#include "support/paths.hpp"
#include "support/script_test.hpp"

// gpus.sh on the shells there are, with a pretended nvidia-smi (tests/data/gpus) for several drivers.

namespace remote::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

class GpusScript : public test::ScriptTest {
 protected:
  // From now on the server has this driver's GPUs.
  void use_driver(const std::string& version) {
    const fs::path data = fs::path(test::source_folder) / "tests" / "data" / "gpus";
    fs::create_directories(data_);
    fs::copy(data / version, data_, fs::copy_options::overwrite_existing | fs::copy_options::recursive);
    servers.add_nvidia_smi(data_, log_);
  }
  void replace(const std::string& name, const std::string& text) { std::ofstream(data_ / name) << text; }
  // What nvidia-smi was asked.
  std::string asked() { return read_file(log_); }
  GpuFacts ask(const char* how = "full") {
    return run(servers::facts_action({.parts = {{"tell_gpus", how}}})).facts.gpus;
  }

  fs::path data_ = servers.home("a") / "gpus";
  fs::path log_ = servers.home("a") / "asked";
};

TEST_P(GpusScript, AnswersWithoutAnyProgram) {
  const GpuFacts facts = ask();
  EXPECT_THAT(facts.gpus, IsEmpty());
  EXPECT_THAT(facts.tools, IsEmpty());
}

// A driver that hangs must not keep a person waiting; one that is only slow to begin gets what there is time
// for.
TEST_P(GpusScript, LimitsHowLongAnAnswerMayTake) {
  use_driver("470");
  servers.add_program("timeout", "echo \"$1\" >>\"$HOME/limits\"\nshift\nexec \"$@\"\n");
  const auto limits = [&](const char* how) {
    fs::remove(servers.home("a") / "limits");
    ask(how);
    const std::string text = read_file(servers.home("a") / "limits");
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(limits("full"), "7");
  EXPECT_EQ(limits("brief"), "10");
}

TEST_P(GpusScript, FindsAProgramOnThePathOfALoginShell) {
  const fs::path home = servers.home("a");
  std::ofstream(home / ".profile") << "echo welcome\nPATH=$HOME/site:$PATH\n";
  const fs::path data = fs::path(test::source_folder) / "tests" / "data" / "gpus";
  fs::create_directories(home / "site");
  std::ofstream(home / "site" / "nvidia-smi") << "#!/bin/sh\nFAKE_GPUS='" + (data / "470").string() +
                                                     "'\nexport FAKE_GPUS\nexec sh '" +
                                                     (data / "nvidia-smi.sh").string() + "' \"$@\"\n";
  fs::permissions(home / "site" / "nvidia-smi", fs::perms::owner_all);
  EXPECT_EQ(ask().gpus.size(), 1U);
}

TEST_P(GpusScript, AsksAnOldDriverByTheOldNames) {
  use_driver("470");
  const GpuFacts facts = ask();
  ASSERT_EQ(facts.gpus.size(), 1U) << facts.tools.at(0).text;
  const Gpu& gpu = facts.gpus[0];
  EXPECT_EQ(gpu.name, "Tesla T4");
  EXPECT_THAT(gpu.clock_limits, ElementsAre(ClockLimit::idle)) << "clocks_throttle_reasons.active";
  EXPECT_EQ(gpu.persistence, false);
  EXPECT_EQ(gpu.remap_pending, false);
  EXPECT_FALSE(gpu.mig);
  EXPECT_EQ(facts.tools.at(0).driver_version, "470.161.03");
  EXPECT_EQ(facts.tools.at(0).library_version, "11.4");
}

TEST_P(GpusScript, DoesWithoutFieldsThatTheDriverDoesNotKnow) {
  use_driver("470");
  replace("gpus.csv", "index, uuid, name, memory.total\n0, GPU-1, Tesla K80, 11441\n");
  const GpuFacts facts = ask();
  ASSERT_EQ(facts.gpus.size(), 1U) << facts.tools.at(0).text;
  EXPECT_EQ(facts.gpus[0].name, "Tesla K80");
  EXPECT_EQ(facts.gpus[0].memory_total, 11441ULL << 20U);
  EXPECT_FALSE(facts.gpus[0].temperature);
}

TEST_P(GpusScript, TellsLinksAndRowsToRemap) {
  use_driver("535");
  const GpuFacts facts = ask();
  ASSERT_EQ(facts.gpus.size(), 2U) << facts.tools.at(0).text;
  EXPECT_EQ(facts.gpus[0].utilisation, 97);
  EXPECT_EQ(facts.gpus[0].remap_pending, false);
  EXPECT_EQ(facts.gpus[1].remap_pending, true);
  EXPECT_EQ(facts.gpus[1].mig, false);
  ASSERT_TRUE(facts.topology);
  EXPECT_THAT(facts.topology->devices, ElementsAre("GPU0", "GPU1", "mlx5_0"));
  EXPECT_EQ(facts.topology->links.at(0).at(1), "NV12");
}

TEST_P(GpusScript, TellsFaults) {
  use_driver("550");
  const GpuFacts facts = ask();
  ASSERT_EQ(facts.gpus.size(), 4U) << facts.tools.at(0).text;
  EXPECT_THAT(
      facts.gpus[0].clock_limits,
      ElementsAre(ClockLimit::hardware_slowdown, ClockLimit::software_thermal, ClockLimit::hardware_thermal));
  EXPECT_EQ(facts.gpus[1].ecc_uncorrected, 3U);
  EXPECT_EQ(facts.gpus[1].ecc_uncorrected_lifetime, 11U);
  EXPECT_EQ(facts.gpus[1].remap_failed, true);
  EXPECT_EQ(facts.gpus[2].mig, true);
  EXPECT_EQ(facts.gpus[2].processes.size(), 1U) << "of an instance";
  EXPECT_THAT(facts.gpus[3].unreadable, Not(IsEmpty()));
  EXPECT_EQ(facts.gpus[0].processes.at(0).name, "python, train.py");
}

TEST_P(GpusScript, TellsALostGpuBesideAnother) {
  use_driver("570");
  const GpuFacts facts = ask();
  EXPECT_EQ(facts.tools.at(0).state, GpuToolState::lost_device);
  ASSERT_EQ(facts.gpus.size(), 2U) << facts.tools.at(0).text;
  EXPECT_EQ(facts.gpus[0].temperature, 45);
  EXPECT_FALSE(facts.gpus[0].ecc);
  EXPECT_EQ(facts.gpus[0].processes.size(), 1U);
  EXPECT_TRUE(facts.gpus[1].lost);
  EXPECT_EQ(facts.gpus[1].pci_address, "0000:41:00.0");
}

TEST_P(GpusScript, TellsWhyThereIsNoAnswer) {
  use_driver("550");
  replace("fails", "9\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n");
  const GpuFacts facts = ask();
  EXPECT_EQ(facts.tools.at(0).state, GpuToolState::no_driver);
  EXPECT_THAT(facts.tools.at(0).text, HasSubstr("couldn't communicate"));
  EXPECT_THAT(facts.gpus, IsEmpty());
}

// What is asked every second costs two calls of nvidia-smi (here one more for each old name).
TEST_P(GpusScript, AsksLittleWhenAskedInBrief) {
  use_driver("550");
  const GpuFacts facts = ask("brief");
  EXPECT_EQ(facts.gpus.size(), 4U);
  EXPECT_FALSE(facts.topology);
  EXPECT_FALSE(facts.xids);
  EXPECT_THAT(split(asked(), '\n'),
              UnorderedElementsAre(HasSubstr("--query-gpu="), HasSubstr("--query-compute-apps="), ""));
}

// A job of ours is known by its cookie, also where a process of it has another environment; what another user
// runs is named by its owner, whatever its environment says.
TEST_P(GpusScript, TellsWhoseAProcessIs) {
  use_driver("535");
  const std::string foreign_user = ::getuid() == 0 ? "/usr/bin/setpriv --reuid=65534 --clear-groups " : "";
  const JobId id = start("env -i /bin/sleep 1000 & echo $! >child.pid; " + foreign_user +
                         "/usr/bin/env REMOTE_JOB_ID=" + std::string(32, 'f') +
                         " /bin/sleep 1000 & echo $! >foreign.pid; wait");
  const auto pid_in = [&](const char* name) {
    int pid = 0;
    until(
        [&] {
          std::ifstream(place() / name) >> pid;
          return pid > 0;
        },
        std::string("the pid in ") + name);
    return std::to_string(pid);
  };
  const std::string child = pid_in("child.pid");
  const std::string foreign = pid_in("foreign.pid");
  // until both have become their programs
  for (const std::string& pid : {child, foreign}) {
    until([&] { return read_file_if_there("/proc/" + pid + "/comm") == "sleep\n"; }, pid + " is sleep");
  }
  const std::string uuid = "GPU-00005350-1111-2222-3333-000000005350, ";
  replace("apps.csv", uuid + child + ", 1024, [Not Found]\n" + uuid + foreign + ", 2048, [Not Found]\n" +
                          uuid + "999999999, 1, [Not Found]\n");
  const auto processes = ask("brief").gpus.at(0).processes;
  ASSERT_EQ(processes.size(), 3U);
  EXPECT_EQ(processes[0].job, id.text());
  EXPECT_TRUE(processes[0].own);
  EXPECT_EQ(processes[0].name, "sleep");
  EXPECT_TRUE(processes[0].age && *processes[0].age < std::chrono::minutes(10));
  if (::getuid() == 0) {
    EXPECT_EQ(processes[1].user, "nobody");
    EXPECT_FALSE(processes[1].own);
    EXPECT_EQ(processes[1].job, "");
  }
  EXPECT_EQ(processes[2].user, "") << "there is no such process";
  kill(id);
}

INSTANTIATE_TEST_SUITE_P(Shells, GpusScript, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
