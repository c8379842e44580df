%% The workloads of several nodes. The others are each a `peer`, which ends with this one.
-module(remote).
-export([pingpong/2, throughput/4, create/2, rings/3]).
-export([ponger/1, sink/4, creature/1, member/2]).

-import(workloads, [time/3, finish/2, judge/2]).

%% Another node.
partner(Workers) ->
    [Node] = partners(Workers, 1),
    Node.

%% Starts Count other nodes, with as many schedulers each. Only they listen, on the loopback, and only for nodes with their cookie.
partners(Workers, Count) ->
    {ok, Random} = file:open("/dev/urandom", [read, raw, binary]),
    {ok, Secret} = file:read(Random, 16),
    Cookie = binary:encode_hex(Secret),
    Names = ["partner" ++ integer_to_list(Number) || Number <- lists:seq(1, Count)],
    Started = [start(Name, Workers, Cookie) || Name <- Names],
    Ports = [{Name, peer:call(Peer, ports, own, [])} || {Name, {Peer, _}} <- lists:zip(Names, Started)],
    [peer:call(Peer, ports, learn, [Ports]) || {Peer, _} <- Started],
    ports:learn(Ports),
    {ok, _} = net_kernel:start('first@127.0.0.1', #{name_domain => longnames, dist_listen => false}),
    [begin
        erlang:set_cookie(Node, binary_to_atom(Cookie)),
        true = net_kernel:connect_node(Node),
        Node
    end || {_, Node} <- Started].

start(Name, Workers, Cookie) ->
    {ok, Peer, Node} = peer:start_link(#{
        name => Name,
        host => "127.0.0.1",
        longnames => true,
        connection => standard_io,
        env => [{"ERL_FLAGS", "-setcookie " ++ binary_to_list(Cookie)}],
        args => ["+S", Workers ++ ":" ++ Workers, "-pa", filename:dirname(code:which(?MODULE)),
                 "-start_epmd", "false", "-epmd_module", "ports", "-kernel", "inet_dist_use_interface", "{127,0,0,1}"]
    }),
    {Peer, Node}.

%% rpingpong

pingpong(Workers, Rounds) ->
    Main = self(),
    Ponger = spawn(partner(Workers), ?MODULE, ponger, [0]),
    Pinger = spawn(fun() ->
        receive start -> ok end,
        pinger(Ponger, Rounds),
        Ended = erlang:monotonic_time(nanosecond),
        Ponger ! {seen, self()},
        receive {seen, Seen} -> Main ! {finished, Ended, Seen} end
    end),
    time(2 * Rounds, Rounds, fun() -> Pinger ! start end).

pinger(_, 0) -> ok;
pinger(Ponger, Left) ->
    Ponger ! {ping, Left, self()},
    receive {pong, Left} -> pinger(Ponger, Left - 1) end.

ponger(Seen) ->
    receive
        {ping, Left, From} ->
            From ! {pong, Left},
            ponger(Seen + 1);
        {seen, From} ->
            From ! {seen, Seen}
    end.

%% rthroughput

throughput(Workers, Messages, Window, Every) ->
    Main = self(),
    Node = partner(Workers),
    Source = spawn(fun() ->
        receive {start, Sink} -> finish(Main, flow(Sink, send(Sink, 0, min(Window, Messages)), Messages, Every)) end
    end),
    Sink = spawn_opt(Node, ?MODULE, sink, [Source, Every, 0, 0], [{message_queue_data, off_heap}]),
    time(Messages, Messages * (Messages + 1) div 2, fun() -> Source ! {start, Sink} end).

%% Returns the sum that the sink has come to.
flow(Sink, Sent, Messages, Every) ->
    receive
        {took, Sum, Messages} -> Sum;
        {took, _, _} -> flow(Sink, send(Sink, Sent, min(Every, Messages - Sent)), Messages, Every)
    end.

send(_, Sent, 0) -> Sent;
send(Sink, Sent, Left) ->
    Sink ! Sent + 1,
    send(Sink, Sent + 1, Left - 1).

sink(Source, Every, Sum, Count) ->
    receive
        Number when (Count + 1) rem Every =:= 0 ->
            Source ! {took, Sum + Number, Count + 1},
            sink(Source, Every, Sum + Number, Count + 1);
        Number ->
            sink(Source, Every, Sum + Number, Count + 1)
    end.

%% rcreate

create(Workers, Actors) ->
    Main = self(),
    Node = partner(Workers),
    Master = spawn_opt(fun() ->
        receive start -> ok end,
        [spawn_request(Node, ?MODULE, creature, [self()], []) || _ <- lists:seq(1, Actors)],
        created(Actors, []),
        finish(Main, Actors)
    end, [{message_queue_data, off_heap}]),
    time(Actors, Actors, fun() -> Master ! start end).

%% Until each has said so. Their numbers come too.
created(0, _) -> ok;
created(Missing, Made) ->
    receive
        created -> created(Missing - 1, Made);
        {spawn_reply, _, ok, Creature} -> created(Missing, [Creature | Made])
    end.

creature(Master) ->
    Master ! created,
    receive stop -> ok end.

%% rrings: a head in this node, and a member in each of three other nodes

rings(Workers, Rings, Rounds) ->
    Nodes = partners(Workers, 3),
    Judge = judge(self(), Rings),
    Built = [ring(lists:reverse(Nodes), Judge) || _ <- lists:seq(1, Rings)],
    Left = Rounds * 4,
    Played = time(Rings * Left, 0, fun() -> [Head ! Left || {Head, _} <- Built] end),
    [seen(Member, Rounds) || {_, Members} <- Built, Member <- Members],
    Played.

%% From the last one to the first.
ring(Nodes, Judge) ->
    Head = spawn(fun() -> receive {next, First} -> head(First, Judge) end end),
    Members = lists:foldl(
        fun(Node, Later) -> [spawn(Node, ?MODULE, member, [hd(Later ++ [Head]), 0]) | Later] end, [], Nodes),
    Head ! {next, hd(Members)},
    {Head, Members}.

head(Next, Judge) ->
    receive
        0 -> Judge ! {done, 0};
        Left -> Next ! Left - 1
    end,
    head(Next, Judge).

member(Next, Hops) ->
    receive
        {seen, From} ->
            From ! {seen, Hops};
        Left ->
            Next ! Left - 1,
            member(Next, Hops + 1)
    end.

seen(Member, Rounds) ->
    Member ! {seen, self()},
    receive
        {seen, Rounds} -> ok;
        {seen, Other} -> throw({wrong, Rounds, Other})
    end.
