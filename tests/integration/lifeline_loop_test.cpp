// The loop of lifeline.py and what it decides, played with from within Python.
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "support/paths.hpp"

namespace remote::jobs {
namespace {

void expect_success(SubprocessSpec spec) {
  const ExecResult result = run_subprocess(std::move(spec));
  EXPECT_TRUE(result.status.success()) << result.err;
}

// One of tests/python.
void expect_script(const std::string& name) {
  SubprocessSpec spec;
  spec.argv = {"python3", "-B", test::source_folder + ("/tests/python/" + name)};
  expect_success(std::move(spec));
}

void expect_python(const std::string& text) {
  const TempFolder folder;
  SubprocessSpec spec;
  spec.directory = folder.path();
  spec.set_env = {{"PYTHONPATH", test::source_folder + std::string("/src/server/python")}};
  spec.argv = {
      "python3", "-B", "-c",
      "import _thread, lifeline, lifeline_job, os, resource, socket, time\n"
      "os.mkdir('jobs')\n"
      "def hub(jobs):\n"
      "  return lifeline.Lifeline({'token': ['x'], 'server': ['a'], 'servers': ['a', 'b'],\n"
      "    'address': ['127.0.0.1'], 'port': ['0'], 'grace': ['0'], 'timeout': ['2'], 'jobs': jobs},\n"
      "    os.path.abspath('jobs'), 'none')\n"
      "def until(true):\n"
      "  limit = time.monotonic() + 15\n"
      "  while not true() and time.monotonic() < limit: time.sleep(0.05)\n"
      "  assert true()\n" +
          text};
  expect_success(std::move(spec));
}

TEST(LifelinePolicy, DecidesAsItShould) {
  expect_script("test_lifeline_policy.py");
}

// A few hundred plays; AGAIN_RUNS of the environment says how many.
TEST(LifelineAgain, TwoAttemptsNeverLiveAtOnce) {
  expect_script("test_lifeline_again.py");
}

TEST(Leases, BelongToOneEachAndEndWithTheirHolders) {
  expect_script("test_lease.py");
}

// LEASE_LAUNCHES of the environment says how many launches are played.
TEST(LeaseJobs, HaveTheirGpusAloneAndWaitForThem) {
  expect_script("test_lease_jobs.py");
}

TEST(LifelineHang, DecidesAsItShould) {
  expect_script("test_lifeline_hang.py");
}

TEST(Flight, TheDumpsAreRead) {
  expect_script("test_flight.py");
}

TEST(LeaseTurns, NoTwoLaunchesWaitForEachOther) {
  expect_script("test_lease_turns.py");
}

// SEEDS of the environment says how many plays.
TEST(SweepPolicy, NoPointRunsTwiceAndNoneIsForgotten) {
  expect_script("test_sweep_policy.py");
}

TEST(LifelineNews, ToldOnce) {
  expect_script("test_lifeline_news.py");
}

// Looking at 20 jobs takes eight seconds here: it neither holds up the watching of the other servers, nor
// counts as having been stopped.
TEST(LifelineLoop, SlowStorageHidesNoDeadServer) {
  expect_python(
      "for number in range(20):\n"
      "  os.mkdir('jobs/%d' % number)\n"
      "  start = open('/proc/self/stat').read().rpartition(') ')[2].split()[19]\n"
      "  open('jobs/%d/supervisor' % number, 'w').write('%d %s x\\n' % (os.getpid(), start))\n"
      "plain = lifeline_job.read_words\n"
      "def slow(path):\n"
      "  time.sleep(0.1)\n"
      "  return plain(path)\n"
      "this = hub([word for n in range(20) for word in (str(n), str(n))])\n"
      "this.policy.last_heard['b'] = time.monotonic()\n"
      "began = time.monotonic()\n"
      "lifeline_job.read_words = slow\n"
      "_thread.start_new_thread(this.run, ())\n"
      "until(lambda: this.policy.by == 'lost:b')\n"
      "assert time.monotonic() - began < 5, time.monotonic() - began\n"
      "os._exit(0)\n");
}

TEST(LifelineLoop, AtTheLimitOfOpenFilesItSaysSoAndGoesOn) {
  expect_python(
      "os.mkdir('jobs/0')\n"
      "this = hub(['0', '0'])\n"
      "this.policy.timeout = 60\n"
      "this.listen()\n"
      "peers = [socket.create_connection(this.listener.getsockname()) for _ in range(2)]\n"
      "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
      "full = []\n"
      "try:\n"
      "  while True: full.append(os.open('/dev/null', os.O_RDONLY))\n"
      "except OSError: pass\n"
      "this.accept()\n"
      "assert this.deaf_until and not this.links\n"
      "os.close(full.pop()), os.close(full.pop())\n"
      "this.tell_how_it_is()\n"
      "assert open('jobs/0/lifeline').read() == 'cannot accept connections: Too many open "
      "files\\n'\n"
      "for fd in full: os.close(fd)\n"
      "this.policy.last_heard['b'] = time.monotonic()\n"
      "this.listen = lambda: None\n"
      "_thread.start_new_thread(this.run, ())\n"
      "until(lambda: len(this.links) == 2 and not this.deaf_until)\n"
      "os._exit(0)\n");
}

}  // namespace
}  // namespace remote::jobs
