#include "agent/container/boxes.hpp"

#include <csignal>

#include <gmock/gmock.h>

#include "agent/local_jobs.hpp"

namespace remote::agent {
namespace {

using ::testing::HasSubstr;

class Boxes : public testing::Test, protected test::LocalJobs {
 protected:
  Boxes() {
    for (const char* engine : {"docker", "podman"}) {
      put_program(engine, "echo \"$0 $* ${DOCKER_HOST-} ${OTHER-} ${REMOTE_JOB_ID-}\" >>'" +
                              (path() / "asked").string() + "'\n[ ! -e '" + (path() / "broken").string() +
                              "' ] || exit 1\n[ \"$1\" != ps ] || cat '" + (path() / "boxes").string() +
                              "'\n");
    }
    set_boxes("");
  }
  void set_boxes(const std::string& text) { test::HostFolder::put(path() / "boxes", text); }
  std::string asked() { return read_file(path() / "asked").value_or(""); }
  std::string make_boxed(const std::string& text = "engine docker\n") { return make({{"container", text}}); }
};

TEST_F(Boxes, TheEngineIsOnRecord) {
  const auto engine = [&](const std::string& text) { return find_engine(record(make_boxed(text))); };
  EXPECT_EQ(engine("engine podman\n")->name, "podman");
  const auto full = engine(
      "engine docker\nPATH /opt/my bin:/bin\nHOME /h\nDOCKER_HOST tcp://x\nCONTAINERS_CONF /c\nLD_PRELOAD "
      "/evil\nDOCKER_x y\nTMPDIR /half");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->variables, (std::map<std::string, std::string>{{"PATH", "/opt/my bin:/bin"},
                                                                 {"HOME", "/h"},
                                                                 {"DOCKER_HOST", "tcp://x"},
                                                                 {"CONTAINERS_CONF", "/c"}}));
  for (const char* text : {"", "engine docker", "engine apptainer\n", "engine /evil/docker\n", "engine\n"}) {
    EXPECT_FALSE(engine(text)) << text;
  }
  EXPECT_FALSE(find_engine(record(make({}))));
}

TEST_F(Boxes, AnEngineIsAskedOnce) {
  std::vector<JobRecord> jobs;
  for (int i = 0; i < 5; ++i) {
    jobs.push_back(record(make_boxed()));
  }
  jobs.push_back(record(make_boxed("engine docker\nDOCKER_HOST tcp://x\n")));
  jobs.push_back(record(make({})));
  set_boxes(box_name(jobs[0].id) + " Up 3 minutes\n" + box_name(jobs[1].id) + " Exited (0) 2 hours ago\n" +
            box_name(jobs[2].id) + " Paused\n" + box_name(jobs[3].id) + " stopping\nremote-other Up\n" +
            box_name(jobs[4].id) + "x Up\n");
  std::vector<const JobRecord*> pointers;
  for (const JobRecord& job : jobs) {
    pointers.push_back(&job);
  }
  const auto states = list_boxes(host(), pointers);
  EXPECT_EQ(states.at(jobs[0].id), BoxState::up);
  EXPECT_EQ(states.at(jobs[1].id), BoxState::down);
  EXPECT_EQ(states.at(jobs[2].id), BoxState::up);
  EXPECT_EQ(states.at(jobs[3].id), BoxState::up);
  EXPECT_EQ(states.at(jobs[4].id), BoxState::missing);
  EXPECT_FALSE(states.contains(jobs[6].id));
  EXPECT_EQ(std::ranges::count(asked(), '\n'), 2) << asked();
  EXPECT_THAT(asked(), HasSubstr(" tcp://x "));
}

TEST_F(Boxes, ItIsAskedAsTheJobDid) {
  host().environment["REMOTE_JOB_ID"] = "mine";
  const JobRecord job = record(make_boxed("engine podman\nDOCKER_HOST tcp://x\nOTHER y\n"));
  list_boxes(host(), {&job});
  EXPECT_EQ(asked(),
            (programs() / "podman").string() +
                " ps --all --no-trunc --filter name=remote- --format {{.Names}} {{.Status}} tcp://x  \n");
}

// If the engine does not answer, nothing proves that a container is gone.
TEST_F(Boxes, OfAnEngineThatDoesNotAnswerAreUp) {
  const JobRecord job = record(make_boxed());
  test::HostFolder::put(path() / "broken", "");
  BoxList boxes(host());
  EXPECT_EQ(boxes.find(job), BoxState::up);
  EXPECT_TRUE(boxes.is_silent(job));
  fs::remove(path() / "broken");
  EXPECT_EQ(boxes.find(job), BoxState::up) << "it remembers";
  boxes.forget();
  EXPECT_EQ(boxes.find(job), BoxState::missing);
  EXPECT_FALSE(boxes.is_silent(job));
  fs::remove(programs() / "docker");
  host().environment["PATH"] = programs().string();
  boxes.forget();
  EXPECT_EQ(boxes.find(job), BoxState::up);
}

TEST_F(Boxes, AreSignalledAndRemoved) {
  const JobRecord job = record(make_boxed());
  signal_box(host(), job, SIGTERM);
  EXPECT_THAT(asked(), HasSubstr("exec " + box_name(job.id) + " sh -c kill -15 -1"));
  remove_box(host(), job);
  EXPECT_THAT(asked(), HasSubstr("kill --signal KILL " + box_name(job.id)));
  EXPECT_THAT(asked(), HasSubstr("rm --force " + box_name(job.id)));
  const std::string before = asked();
  const JobRecord other = record(make({}));
  signal_box(host(), other, SIGTERM);
  remove_box(host(), other);
  EXPECT_EQ(asked(), before);
}

}  // namespace
}  // namespace remote::agent
