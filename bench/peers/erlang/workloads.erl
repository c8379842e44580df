%% The workloads on Erlang/OTP: plain processes without gen_server, because no workload needs its calls and checks.
%%
%% Processes with long queues keep them off their heap, because each garbage collection would copy them.
-module(workloads).
-export([main/0, time/3, finish/2, judge/2]).

main() ->
    spawn_opt(fun listen/0, [{priority, max}]),
    try
        run(init:get_plain_arguments())
    catch
        throw:{wrong, Expected, Found} -> fail("wrong: the result should be ~p and is ~p", [Expected, Found]);
        throw:{unknown, Workload} -> fail("there is no workload `~s`", [Workload])
    end.

%% Ends with the standard input, whatever the others are at.
listen() ->
    case io:get_line("") of
        eof -> halt(0);
        _ -> listen()
    end.

run([Workload, "--size", Size, "--workers", Workers]) when Size =:= "smoke"; Size =:= "default" ->
    {Ops, Nanoseconds} = play(Workload, Workers, fun(Smoke, Default) ->
        case Size of "smoke" -> Smoke; "default" -> Default end
    end),
    io:format("{\"peer\":\"erlang\",\"version\":\"~s\",\"workload\":\"~s\",\"ops\":~b,\"ns\":~b}~n",
              [version(), Workload, Ops, Nanoseconds]),
    %% Its memory is looked at until its input ends.
    receive after infinity -> ok end;
run(_) ->
    fail("usage: erlang WORKLOAD --size smoke|default --workers N", []).

fail(Format, Arguments) ->
    io:format(standard_error, Format ++ "~n", Arguments),
    halt(1).

version() ->
    Release = erlang:system_info(otp_release),
    case file:read_file(filename:join([code:root_dir(), "releases", Release, "OTP_VERSION"])) of
        {ok, Version} -> string:trim(Version);
        {error, _} -> Release
    end.

play("rpingpong", Workers, Pick) -> remote:pingpong(Workers, Pick(200, 100000));
play("rthroughput", Workers, Pick) -> remote:throughput(Workers, Pick(20000, 2000000), 10000, 1000);
play("rcreate", Workers, Pick) -> remote:create(Workers, Pick(100, 5000));
play("rrings-1", Workers, Pick) -> remote:rings(Workers, 1, Pick(20, 1000));
play("rrings-32", Workers, Pick) -> remote:rings(Workers, Pick(4, 32), Pick(20, 1000));
play("rrings-320", Workers, Pick) -> remote:rings(Workers, Pick(4, 320), Pick(20, 1000));
play(Workload, _, Pick) -> play(Workload, Pick).

play("count", Pick) -> count(Pick(10000, 10000000));
play("pingpong", Pick) -> pingpong(Pick(2000, 2000000));
play("threadring", Pick) -> rings(1, 503, Pick(5000, 5000000));
play("ringmulti", Pick) -> rings(Pick(10, 100), Pick(20, 100), Pick(500, 100000));
play("fjcreate", Pick) -> fjcreate(Pick(2000, 1000000));
play("skynet", Pick) -> skynet(Pick(1000, 1000000));
play("chameneos", Pick) -> chameneos(Pick(1000, 2000000));
play("big", Pick) -> big(Pick(20, 20000));
play("fib", Pick) -> fib(Pick(10, 25));
play("executor", Pick) -> executor(Pick(4, 400), Pick(100, 400));
play("repeat", Pick) -> repeat(Pick(2500, 100000), Pick(4, 40));
play(Workload, _) -> throw({unknown, Workload}).

%% Calls Start, and waits for the message that the final state is reached.
time(Ops, Expected, Start) ->
    Started = erlang:monotonic_time(nanosecond),
    Start(),
    receive
        {finished, Ended, Expected} -> {Ops, Ended - Started};
        {finished, _, Other} -> throw({wrong, Expected, Other})
    end.

finish(Main, Result) ->
    Main ! {finished, erlang:monotonic_time(nanosecond), Result}.

%% Waits for so many {done, Number}, and finishes with their sum.
judge(Main, Missing) ->
    spawn_opt(fun() -> finish(Main, sum(Missing, 0)) end, [{message_queue_data, off_heap}]).

sum(0, Sum) -> Sum;
sum(Missing, Sum) ->
    receive {done, Number} -> sum(Missing - 1, Sum + Number) end.

%% count

count(Increments) ->
    Main = self(),
    Counter = spawn_opt(fun() -> counter(0) end, [{message_queue_data, off_heap}]),
    Producer = spawn(fun() ->
        receive start -> produce(Counter, Increments) end,
        Counter ! {get, self()},
        receive {count, Count} -> finish(Main, Count) end
    end),
    time(Increments, Increments, fun() -> Producer ! start end).

counter(Count) ->
    receive
        increment -> counter(Count + 1);
        {get, From} -> From ! {count, Count}
    end.

produce(_, 0) -> ok;
produce(Counter, Left) ->
    Counter ! increment,
    produce(Counter, Left - 1).

%% pingpong

pingpong(Rounds) ->
    Main = self(),
    Ponger = spawn(fun ponger/0),
    Pinger = spawn(fun() ->
        receive start -> ok end,
        pinger(Ponger, Rounds),
        finish(Main, done)
    end),
    time(2 * Rounds, done, fun() -> Pinger ! start end).

pinger(_, 0) -> ok;
pinger(Ponger, Left) ->
    Ponger ! {ping, self()},
    receive pong -> pinger(Ponger, Left - 1) end.

ponger() ->
    receive {ping, From} -> From ! pong end,
    ponger().

%% threadring, ringmulti

rings(Rings, Members, Hops) ->
    Judge = judge(self(), Rings),
    Firsts = [ring(Members, Judge) || _ <- lists:seq(1, Rings)],
    time(Rings * Hops, Rings * (Hops rem Members), fun() -> [First ! Hops || First <- Firsts] end).

ring(Members, Judge) ->
    Last = spawn(fun() -> receive {next, First} -> member(First, Members - 1, Judge) end end),
    First = lists:foldl(
        fun(Position, Next) -> spawn(fun() -> member(Next, Position, Judge) end) end,
        Last, lists:seq(Members - 2, 0, -1)),
    Last ! {next, First},
    First.

member(Next, Position, Judge) ->
    receive
        0 -> Judge ! {done, Position};
        Left -> Next ! Left - 1
    end,
    member(Next, Position, Judge).

%% fjcreate

fjcreate(Actors) ->
    Main = self(),
    Master = spawn_opt(fun() ->
        receive start -> ok end,
        Self = self(),
        Children = [spawn(fun() -> receive {work, Number} -> Self ! {done, 2 * Number} end end)
                    || _ <- lists:seq(1, Actors)],
        employ(Children, 0),
        finish(Main, sum(Actors, 0))
    end, [{message_queue_data, off_heap}]),
    time(Actors, Actors * (Actors - 1), fun() -> Master ! start end).

employ([], _) -> ok;
employ([Child | Children], Number) ->
    Child ! {work, Number},
    employ(Children, Number + 1).

%% skynet

skynet(Leaves) ->
    Judge = judge(self(), 1),
    time((Leaves * 10 - 1) div 9, Leaves * (Leaves - 1) div 2, fun() -> spawn(fun() -> node(Judge, 0, Leaves) end) end).

node(Parent, Number, 1) -> Parent ! {done, Number};
node(Parent, Number, Leaves) ->
    Self = self(),
    Below = Leaves div 10,
    [spawn(fun() -> node(Self, Number + Child * Below, Below) end) || Child <- lists:seq(0, 9)],
    Parent ! {done, sum(10, 0)}.

%% chameneos

chameneos(Meetings) ->
    Judge = judge(self(), 10),
    Mall = spawn(fun() -> mall(Meetings) end),
    Colours = {blue, red, yellow},
    Creatures = [spawn(fun() -> receive start -> creature(Mall, Judge, element(Number rem 3 + 1, Colours), 0) end end)
                 || Number <- lists:seq(0, 9)],
    time(Meetings, 2 * Meetings, fun() -> [Creature ! start || Creature <- Creatures] end).

mall(0) ->
    receive {enter, Who, _} -> Who ! closed end,
    mall(0);
mall(Left) ->
    receive
        {enter, First, FirstColour} ->
            receive
                {enter, Second, SecondColour} ->
                    First ! {meet, SecondColour},
                    Second ! {meet, FirstColour},
                    mall(Left - 1)
            end
    end.

creature(Mall, Judge, Colour, Meetings) ->
    Mall ! {enter, self(), Colour},
    receive
        {meet, Other} -> creature(Mall, Judge, complement(Colour, Other), Meetings + 1);
        closed -> Judge ! {done, Meetings}
    end.

complement(Colour, Colour) -> Colour;
complement(blue, red) -> yellow;
complement(blue, yellow) -> red;
complement(red, blue) -> yellow;
complement(red, yellow) -> blue;
complement(yellow, blue) -> red;
complement(yellow, red) -> blue.

%% big

big(Pings) ->
    Main = self(),
    Judge = judge(Main, 120),
    Members = list_to_tuple([spawn(fun() ->
        receive {start, All} -> talker(All, Number, dice(Number), Pings, 0, Judge) end
    end) || Number <- lists:seq(0, 119)]),
    Played = time(2 * 120 * Pings, 0, fun() -> [Member ! {start, Members} || Member <- tuple_to_list(Members)] end),
    Counts = judge(Main, 120),
    time(0, 120 * Pings, fun() -> [Member ! {report, Counts} || Member <- tuple_to_list(Members)] end),
    Played.

%% A linear congruential generator of 32 bits.
dice(Number) -> Number * 16#9E3779B9 band 16#FFFFFFFF.

roll(Dice) -> (Dice * 1664525 + 1013904223) band 16#FFFFFFFF.

talker(Members, Number, Dice, Left, Pinged, Judge) ->
    Rolled = roll(Dice),
    Other = (Number + 1 + (Rolled * 119 bsr 32)) rem 120,
    element(Other + 1, Members) ! {ping, self()},
    wait(Members, Number, Rolled, Left, Pinged, Judge).

wait(Members, Number, Dice, Left, Pinged, Judge) ->
    receive
        {ping, From} ->
            From ! pong,
            wait(Members, Number, Dice, Left, Pinged + 1, Judge);
        pong when Left > 1 ->
            talker(Members, Number, Dice, Left - 1, Pinged, Judge);
        pong ->
            Judge ! {done, 0},
            wait(Members, Number, Dice, 0, Pinged, Judge);
        {report, Counts} ->
            Counts ! {done, Pinged}
    end.

%% fib

fib(N) ->
    {Value, Actors} = calls(N),
    Judge = judge(self(), 1),
    time(Actors, Value, fun() -> spawn(fun() -> call(Judge, N) end) end).

calls(N) when N < 2 -> {N, 1};
calls(N) ->
    {A, CallsA} = calls(N - 1),
    {B, CallsB} = calls(N - 2),
    {A + B, CallsA + CallsB + 1}.

call(Parent, N) when N < 2 -> Parent ! {done, N};
call(Parent, N) ->
    Self = self(),
    spawn(fun() -> call(Self, N - 1) end),
    spawn(fun() -> call(Self, N - 2) end),
    Parent ! {done, sum(2, 0)}.

%% executor

executor(Groups, Sends) ->
    Judge = judge(self(), 100 * Groups),
    Firsts = [group(Sends, Judge) || _ <- lists:seq(1, Groups)],
    time(Groups * 100 * Sends, 0, fun() -> [First ! start || First <- Firsts] end).

group(Sends, Judge) ->
    Group = [spawn(fun() ->
        receive {group, All} -> flood(All, All, Sends, Sends + 1, Judge) end
    end) || _ <- lists:seq(1, 100)],
    [Member ! {group, Group} || Member <- Group],
    hd(Group).

%% All messages of its share, and the start message, are still to come at first.
flood(_, _, SendsLeft, 0, Judge) -> Judge ! {done, SendsLeft};
flood(Group, [], SendsLeft, RecsLeft, Judge) -> flood(Group, Group, SendsLeft, RecsLeft, Judge);
flood(Group, [Next | Rest] = Others, SendsLeft, RecsLeft, Judge) ->
    receive
        token when SendsLeft > 0 ->
            Next ! token,
            flood(Group, Rest, SendsLeft - 1, RecsLeft - 1, Judge);
        token ->
            flood(Group, Others, 0, RecsLeft - 1, Judge);
        start ->
            [Member ! token || Member <- Group],
            flood(Group, Others, SendsLeft, RecsLeft, Judge)
    end.

%% repeat

repeat(Servers, Rounds) ->
    Main = self(),
    Client = spawn_opt(fun() ->
        receive {servers, All} -> ok end,
        receive start -> ok end,
        finish(Main, rounds(All, Servers, Rounds, 0))
    end, [{message_queue_data, off_heap}]),
    Client ! {servers, [spawn(fun() -> server(Client, 1) end) || _ <- lists:seq(1, Servers)]},
    time(2 * Servers * Rounds, Servers * (Rounds * (Rounds + 1) div 2), fun() -> Client ! start end).

rounds(_, _, 0, Sum) -> Sum;
rounds(All, Servers, Left, Sum) ->
    lists:foreach(fun(Server) -> Server ! request end, All),
    rounds(All, Servers, Left - 1, sum(Servers, Sum)).

server(Client, Requests) ->
    receive request -> Client ! {done, Requests} end,
    server(Client, Requests + 1).
