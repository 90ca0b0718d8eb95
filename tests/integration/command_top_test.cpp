#include <fstream>

#include "support/command_world.hpp"
#include "support/paths.hpp"
#include "support/waiting.hpp"

// `remote top`.

namespace remote::test {
namespace {

class CommandTop : public ::testing::Test {
 protected:
  CommandWorld world;

  // Both servers have two GPUs, as reported by driver 535; `apps`: the processes that use GPU memory.
  void add_gpus(const std::string& apps = "") {
    const fs::path data = fs::path(source_folder) / "tests" / "data" / "gpus";
    const fs::path here = world.home() / "gpus";
    fs::create_directories(here);
    fs::copy(data / "535", here, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    std::ofstream(here / "apps.csv") << apps;
    world.servers().add_nvidia_smi(here);
  }
  Job counting_job() {
    const Job job = world.job("a", "echo one; echo 'two \x1b[2J'; exec sleep 1000");
    until(
        [&] {
          return read_file_if_there(world.there("a") / ".jobs" / job.id.text() / "job.out")
                     .value_or("")
                     .size() > 8;
        },
        "the job has written");
    return world.stored(job.key);
  }
};

TEST_F(CommandTop, PrintsAllServersOnce) {
  const CommandResult result = world.run({"top", "--once"});
  EXPECT_THAT(result, Ends(0,
                           AllOf(::testing::ContainsRegex("^a  [0-9]+ CPUs?  load "), HasSubstr("\nb  "),
                                 HasSubstr("memory "), HasSubstr("disk ")),
                           ""));
}

TEST_F(CommandTop, ShowsGpusAndWhoHasThem) {
  const Job job = counting_job();
  const std::string uuid = "GPU-00005350-1111-2222-3333-000000005350, ";
  add_gpus(uuid +
           std::to_string(*world.run({"job-list", "--json"}).json()[0]["pid"].get_ptr<std::int64_t*>()) +
           ", 40512, python3\n");
  const CommandResult result = world.run({"top", "--once", "--server", "a"});
  EXPECT_THAT(result.out, HasSubstr("97 %"));
  EXPECT_THAT(result.out, HasSubstr("39.6 of 80.0 GiB"));
  EXPECT_THAT(result.out, HasSubstr("job " + std::to_string(job.key) + "  A100"));
  EXPECT_THAT(result.out, HasSubstr("free"));
  EXPECT_THAT(result.out, HasSubstr("s ago: two \\x1b[2J"))
      << "what a job writes never reaches the terminal raw";
}

TEST_F(CommandTop, GivesJson) {
  add_gpus();
  const Job job = counting_job();
  const nlohmann::json json = world.run({"top", "--once", "--json"}).json();
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["server"], "a");
  EXPECT_EQ(json[0]["error"], nullptr);
  EXPECT_GT(json[0]["load"]["memory_total"], 0);
  EXPECT_EQ(json[0]["gpus"].size(), 2U);
  EXPECT_EQ(json[0]["gpus"][0]["utilisation"], 97);
  EXPECT_EQ(json[0]["jobs"][0]["key"], job.key);
  EXPECT_EQ(json[0]["jobs"][0]["state"], "running");
  EXPECT_EQ(json[0]["jobs"][0]["last_line"], "two \x1b[2J");
  EXPECT_EQ(json[1]["jobs"].size(), 0U);
}

TEST_F(CommandTop, MarksAServerThatIsNotReached) {
  world.cut_off({"b"});
  const CommandResult result = world.run({"top", "--once"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, ::testing::ContainsRegex("^a  [0-9]+ CPUs?  load "));
  EXPECT_THAT(result.err, HasSubstr("b: "));
  const nlohmann::json json = world.run({"top", "--json"}).json();
  EXPECT_EQ(json[0]["error"], nullptr);
  EXPECT_NE(json[1]["error"], nullptr);
  EXPECT_EQ(json[0]["cause"], nullptr);
  EXPECT_EQ(json[1]["cause"], "unreachable");
  EXPECT_EQ(json[1]["load"], nullptr);
}

TEST_F(CommandTop, SaysWhyTheGpusAreNotSeen) {
  add_gpus();
  std::ofstream(world.home() / "gpus" / "fails")
      << "9\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n";
  EXPECT_THAT(world.run({"top", "--once"}).out, HasSubstr("nvidia-smi: NVIDIA-SMI has failed because"));
}

// An invalid answer from one server is an error line for that server only.
TEST_F(CommandTop, LeavesOddAnswersWithTheirServer) {
  world.servers().add_program("stat", "[ \"$HOME\" != '" + world.servers().home("b").string() +
                                          "' ] || echo '@remote1 nonsense 1'\nexec /usr/bin/stat \"$@\"\n");
  const CommandResult result = world.run({"top", "--once"});
  EXPECT_EQ(result.code, 0) << "stat's own output is not taken for lines of ours: " << result;
  world.servers().add_program("nvidia-smi", "printf 'x\\n@remote1 load 1 1 1 1\\n'\n");
  EXPECT_EQ(world.run({"top", "--once"}).code, 0) << "neither is that of nvidia-smi";
}

// The live screen on a terminal: drawing, moving, and leaving with a key, which restores the original screen.
TEST_F(CommandTop, IsALiveScreen) {
  const Job job = counting_job();
  const auto command = world.start({"top", "--interval", "1"}, screen("jq"));
  const CommandResult result = command->wait();
  EXPECT_EQ(result.code, 0) << result;
  EXPECT_THAT(result.out, HasSubstr("remote top"));
  EXPECT_THAT(result.out, HasSubstr("> \033[0m\033[2mjob \033[0m\033[1m" + std::to_string(job.key)));
  EXPECT_TRUE(result.out.ends_with("\033[?7h\033[?25h\033[?1049l")) << result;
}

TEST_F(CommandTop, LeavesTheScreenWhenInterrupted) {
  const auto command = world.start({"top", "--interval", "1"}, screen());
  until([&] { return command->out().find("remote top") != std::string::npos; }, "the screen is there");
  command->interrupt();
  const CommandResult result = command->wait();
  EXPECT_EQ(result.code, 130);
  EXPECT_TRUE(result.out.ends_with("\033[?7h\033[?25h\033[?1049l")) << result;
}

TEST_F(CommandTop, AsksBeforeItEndsAJob) {
  const Job job = counting_job();
  const CommandResult kept = world.run({"top"}, screen("jxnq"));
  EXPECT_THAT(kept.out, HasSubstr("End job " + std::to_string(job.key)));
  EXPECT_EQ(world.run({"job-list", "--json"}).json().size(), 1U) << "it was not confirmed";
  EXPECT_THAT(world.run({"top"}, screen("jxyq")).err, HasSubstr("it is ended"))
      << "it goes on after the screen";
  EXPECT_EQ(world.stored(job.key).state, JobState::killed);
}

TEST_F(CommandTop, AKeyThatIsNoAnswerLeavesTheQuestionOpen) {
  const Job job = counting_job();
  EXPECT_EQ(world.run({"top"}, screen("jxz\nyq")).code, 0);  // Enter means no
  EXPECT_EQ(world.run({"job-list", "--json"}).json().size(), 1U);
  EXPECT_THAT(world.run({"top"}, screen("jxzfyq")).err, HasSubstr("it is ended"));
  EXPECT_EQ(world.stored(job.key).state, JobState::killed);
}

TEST_F(CommandTop, EndsOneRankOrAllOfALaunch) {
  const auto launch = [&] {
    EXPECT_EQ(world
                  .run({"launch", "--nproc-per-node", "2", "--on-failure", "leave", "--no-check",
                        "--no-follow", "--cmd", "sleep 1000"})
                  .code,
              0);
  };
  const auto running = [&] { return world.run({"job-list", "--json"}).json().size(); };
  launch();
  const CommandResult one = world.run({"top"}, screen("jxnjxyq"));
  EXPECT_THAT(one.out, HasSubstr("on a) alone? [y/N]  3 other ranks keep running (X: all)"));
  EXPECT_THAT(one.err, HasSubstr("it is ended; 3 other ranks keep running (X ends them)"));
  EXPECT_EQ(running(), 3U);
  const CommandResult kept = world.run({"top"}, screen("jXnq"));
  EXPECT_THAT(kept.out, HasSubstr("End jobs "));
  EXPECT_EQ(running(), 3U) << "it was not confirmed";
  EXPECT_THAT(world.run({"top"}, screen("jXyq")).err, HasSubstr("they are ended"));
  EXPECT_EQ(running(), 0U);
  EXPECT_THAT(world.run({"top"}, screen("?qq")).out,
              HasSubstr("X                    stop all ranks of its launch"));
}

TEST_F(CommandTop, ShowsItsKeys) {
  EXPECT_THAT(world.run({"top"}, screen("?qq")).out, HasSubstr("choose a job"));
}

}  // namespace
}  // namespace remote::test
