#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <remote/cancel.hpp>

#include "base/files.hpp"
#include "servers/action.hpp"
#include "ssh/pump.hpp"

// Scripts on several servers that are spoken with while they run, and that wait for each other in between.

namespace remote::servers {

// A script on one server whose stdin stays open: it reads orders there, and ends at the end of its stdin,
// which comes when this object goes. One thread.
class Conversation {
 public:
  // Starts it: Script::open_input(). `what` is for the log and for errors. The reader gets its stdout, and
  // must outlive this.
  Conversation(ssh::Connection& connection, std::string what, const std::string& request,
               AnswerReader& reader, const Cancel& cancel);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // Sends lines to its stdin; serve() goes on with it. Say nothing before the script has answered: the server
  // may not have the program yet, and would lose it.
  void say(std::string_view lines) {
    flow_->send(lines);
    received_ = 0;
  }
  // Waits until `done` says true; returns false when the script has ended before. `wake` (a descriptor, or
  // -1) being readable makes it ask again. Throws Error as soon as the script has answered something wrong or
  // has refused, when it takes longer than `limit`, when nothing comes for `silence` (0: any), or when the
  // link is lost, and Interrupted.
  bool serve(const std::function<bool()>& done, std::chrono::milliseconds limit,
             std::chrono::milliseconds silence = {}, int wake = -1);
  // Waits for the end, and throws Error for an answer that is not understood.
  void finish(std::chrono::milliseconds limit);

 private:
  ssh::Pump pump_;
  std::string what_;
  AnswerReader& reader_;
  std::string errors_;        // the end of stderr
  std::size_t received_ = 0;  // since something was last said
  std::unique_ptr<ssh::Flow> flow_;
};

// Where threads wait for each other, again and again. One that leaves is not waited for. Any thread.
class Barrier {
 public:
  explicit Barrier(std::size_t members);

  // A place in it, for one thread; gives it up when it goes.
  class Member {
   public:
    Member(Barrier& barrier, std::size_t index) : barrier_(barrier), index_(index) {}
    ~Member() { barrier_.leave(round_); }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    // This member has come so far.
    void arrive();
    // Whether all others that have not left have come so far, too.
    bool complete();
    // Readable from that moment on, until complete() is asked.
    int wake() const { return barrier_.pipes_[index_].read.get(); }

   private:
    Barrier& barrier_;
    std::size_t index_;
    std::size_t round_ = 0;
  };

 private:
  void leave(std::size_t round);
  void check();  // with the lock held

  std::mutex mutex_;
  std::vector<Pipe> pipes_;
  std::size_t members_;
  std::size_t arrived_ = 0;
  std::size_t round_ = 0;
};

}  // namespace remote::servers
